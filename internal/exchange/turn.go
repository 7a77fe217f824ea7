package exchange

// A Standing says whether a decision about a request still holds when its turn has come.
type Standing uint8

const (
	Same    Standing = iota // the same robots.txt decides
	Changed                 // another robots.txt decides, which is known
	Unread                  // robots.txt must be read first, which takes the turn
)

// Await calls wait until a request has its turn and a robots.txt that is known allows it. look
// compares the robots.txt that has decided with the one that decides now, and check decides again.
func Await(wait func() error, look func() Standing, check func() error) error {
	for {
		err := wait()
		if err != nil {
			return err
		}
		s := look()
		if s == Same {
			return nil
		}
		err = check()
		if err != nil || s == Changed {
			return err
		}
	}
}
