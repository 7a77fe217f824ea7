// The kit of the tests: sites on the loopback interface with access logs, and services as processes.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Configuration, log } from 'crawlee';

// FileDownload takes no Configuration.
process.env.CRAWLEE_STORAGE_DIR = mkdtempSync(path.join(os.tmpdir(), 'crawlee-'));

export const AGENT = 'ExampleBot/1.0 (+https://example.com/bot)';

log.setLevel(log.LEVELS.OFF);

/** The command collyrobots: the file in COLLYROBOTS_COMMAND, or one that is built from this repository. */
export const command = process.env.COLLYROBOTS_COMMAND ?? build();

function build() {
    const file = path.join(mkdtempSync(path.join(os.tmpdir(), 'collyrobots-')), 'collyrobots');
    execFileSync('go', ['build', '-o', file, '.'], { cwd: new URL('../../../cmd/collyrobots', import.meta.url), stdio: 'inherit' });
    return file;
}

/** Returns a configuration of a crawler that keeps its storage in memory. */
export function inMemory() {
    return new Configuration({ persistStorage: false, purgeOnStart: false, logLevel: log.LEVELS.OFF });
}

/** A site with an access log. */
export class Site {
    /** The requests that have arrived, with path, time in milliseconds and headers. */
    log = [];
    #server;

    /**
     * Starts a site. pages has a function for each path that is not an empty HTML page, which gets the response and the
     * request. It is closed when the test t has ended.
     */
    static async start(t, robots, pages = {}) {
        const site = new Site();
        site.#server = http.createServer((request, response) => {
            const { pathname } = new URL(request.url, 'http://site');
            // Chromium may request the icon by itself, which the package does not see: README, "What it does not see".
            if (pathname === '/favicon.ico') return response.writeHead(404).end();
            site.log.push({ path: pathname, at: performance.now(), headers: request.headers, method: request.method });
            response.setHeader('Content-Type', pathname === '/robots.txt' ? 'text/plain' : 'text/html');
            if (pathname === '/robots.txt') return response.end(robots);
            const page = pages[pathname] ?? pages['*'];
            return page ? page(response, request) : response.end(`<title>${pathname}</title>`);
        });
        site.#server.listen(0, '127.0.0.1');
        await once(site.#server, 'listening');
        site.url = `http://127.0.0.1:${site.#server.address().port}`;
        t.after(() => {
            site.#server.close();
            site.#server.closeAllConnections();
        });
        return site;
    }

    /** Returns the paths of the requests in their order, without robots.txt. */
    paths() {
        return this.log.map((access) => access.path).filter((path) => path !== '/robots.txt');
    }

    /** Checks that the requests to a site, including robots.txt, are at least milliseconds apart. */
    assertGaps(milliseconds) {
        for (let i = 1; i < this.log.length; i++) {
            const gap = this.log[i].at - this.log[i - 1].at;
            // The site sees a request a little after it was sent, and timers of Node.js may be 1 ms early.
            assert.ok(gap >= milliseconds - 2, `${this.log[i].path} came ${gap} ms after ${this.log[i - 1].path}`);
        }
    }
}

/** Returns a page that leads to a location. */
export const redirect = (location, status = 302) => (response) => response.writeHead(status, { Location: location }).end();

/** Returns a page with links. */
export const links = (...urls) => (response) => response.end(urls.map((url) => `<a href="${url}">${url}</a>`).join(' '));

/** A process that runs collyrobots serve. */
export class Service {
    #process;
    #args;

    /** Starts a service with flags and without a delay. The first of them may be its socket. It is killed when the test t has ended. */
    static async start(t, ...args) {
        const service = new Service();
        service.#args = ['-delay', '0s', ...args];
        await service.restart(args[0]?.startsWith('unix:') ? service.#args.splice(2, 1)[0] : '127.0.0.1:0');
        t.after(() => service.kill());
        return service;
    }

    /** Starts the process again, at the same address. */
    async restart(listen = this.url.startsWith('unix:') ? this.url : new URL(this.url).host) {
        this.#process = spawn(command, ['serve', '-allow-private', '-listen', listen, ...this.#args], { stdio: ['ignore', 'ignore', 'pipe'] });
        for await (const line of createInterface({ input: this.#process.stderr })) {
            const [, url] = /^Listening on (\S+)$/.exec(line) ?? [];
            if (url) {
                this.url = url;
                this.#process.stderr.resume();
                return;
            }
        }
        throw new Error('the service has ended');
    }

    /** Kills the process, as kill -9 does. */
    async kill() {
        if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
        this.#process.kill('SIGKILL');
        await once(this.#process, 'exit');
    }

    /** Returns what GET path responds. */
    async get(path) {
        return (await fetch(new URL(path, this.url))).json();
    }
}

/** Waits until done returns true. */
export async function until(done) {
    for (const end = Date.now() + 30_000; !(await done()); await sleep(10)) {
        assert.ok(Date.now() < end, `waited for 30 s until ${done}`);
    }
}
