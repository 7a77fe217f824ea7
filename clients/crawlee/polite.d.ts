import type { BasicCrawler, RetryRequestError } from 'crawlee';

/** What {@link polite} needs to know. */
export interface PoliteOptions {
    /** The User-Agent header of all requests, such as `ExampleBot/1.0 (+https://example.com/bot)`. The first name in it is looked up in robots.txt. */
    agent: string;
    /** What the pages are for: `search`, `ai-use`, `train-ai` or several of them. A page whose owner disallows one of these uses is denied. */
    purpose?: Purpose | Purpose[];
    /** The address of `collyrobots serve`, such as `unix:/run/collyrobots.sock`. Without it, the environment variable COLLYROBOTS, or else http://127.0.0.1:8094. */
    service?: string;
    /** The token of the service, if it has a `-token-file`. Without it, the environment variable COLLYROBOTS_TOKEN. */
    token?: string;
    /** Whether a browser also requests images and fonts. False if it is missing. */
    images?: boolean;
}

/** A use of pages that their owners may disallow. */
export type Purpose = 'search' | 'ai-use' | 'train-ai';

/** What the service has decided about a URL. The guide of `collyrobots serve` describes the other fields. */
export interface Decision {
    url: string;
    allowed: boolean;
    reason: string;
    [field: string]: unknown;
}

/**
 * Makes a crawler take a turn before each request, and returns the crawler. Call it before `crawler.run()`. The crawler may be a
 * CheerioCrawler, another crawler with HTTP, a PlaywrightCrawler or an AdaptivePlaywrightCrawler.
 */
export function polite<T extends BasicCrawler<any>>(crawler: T, options: PoliteOptions): T;

/** The error of a request that must not be sent. Its message says why. The page fails without a retry. */
export class DeniedError extends Error {
    url: string;
    /** The decision of the service. It is missing if the URL cannot be requested at all. */
    decision?: Decision;
}

/** The error of a request that still waited for its turn when the crawl was stopped. It goes back to the queue. */
export class StoppedError extends RetryRequestError {}
