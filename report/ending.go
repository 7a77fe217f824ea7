package report

// An Ending says why a host gets no more requests. It is a stable short code. It is "" if the host
// still has pages that wait or are in flight, or has had none.
type Ending string

// If several of these apply to a host, its Ending is the last one in this list.
const (
	// EndingDone means that all pages that the program has requested so far are done, or are denied
	// for a reason other than MaxPages, MaxPagesPerHost and StopAfterRefusals. The plugin cannot know whether
	// the program will request more pages.
	EndingDone Ending = "done"
	// EndingBudget means that pages were not sent because of MaxPages or MaxPagesPerHost.
	EndingBudget Ending = "budget"
	// EndingThrottled means that pages were given up because the host answered 429 or 503 to all of their
	// repetitions, or asked for a longer wait than these may take; see Retry and RetryThrottled. Pages of
	// the host may have been fetched since then.
	EndingThrottled Ending = "throttled"
	// EndingRefused means that pages were not sent because of StopAfterRefusals. Pages of the host may
	// have been sent since then.
	EndingRefused Ending = "refused"
	// EndingCanceled means that the context of a page ended before the page was done. It also means
	// that pages of a host without one of the endings above were left in a urlstore.Store.
	EndingCanceled Ending = "canceled"
	// EndingClosed means that pages were not sent because of Plugin.Close. The pages that were left
	// in a urlstore.Store count only for a host without EndingBudget, EndingThrottled and EndingRefused.
	EndingClosed Ending = "closed"
)
