/**
 * Who may use the console. Every page that a browser shows can send requests to loopback, and so can every user of the
 * machine. Three checks refuse them:
 *
 *   Host     names this server. A foreign name that resolves to 127.0.0.1 (DNS rebinding) is another origin to the
 *            browser, and would otherwise be served.
 *   origin   Sec-Fetch-Site and Origin. SameSite=Strict alone is not enough: a page on another port of 127.0.0.1 is
 *            the same site, and the browser adds the cookie to its requests.
 *   cookie   issued for the token that only the output of the command contains. The token is in the fragment of the
 *            address, which browsers never send.
 *
 * Source: Fetch Metadata Request Headers (W3C), RFC 6265bis §5.6.7 ("SameSite").
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

const SECRET_BYTES = 32;

export interface Guard {
  /** For the fragment of the address. */
  readonly token: string;
  /** Why the request is refused, for every path. undefined: it may continue. */
  refusalOf(request: GuardedRequest): string | undefined;
  /** Whether the request has the cookie. */
  isSignedIn(headers: IncomingHttpHeaders): boolean;
  /** The value of Set-Cookie for the right token. */
  cookieFor(token: string): string | undefined;
}

export interface GuardedRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** Static files of the page, which contain no data. A link from another page may open them. */
  readonly isPage: boolean;
}

/** `port`: where the server listens. Cookies are shared by all ports of a host, so the name of ours contains it. */
export function createGuard(port: number): Guard {
  const token = randomBytes(SECRET_BYTES).toString('base64url');
  const session = randomBytes(SECRET_BYTES).toString('base64url');
  const cookieName = `nodekeeper-console-${port}`;
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  return {
    token,
    refusalOf({ method, headers, isPage }) {
      const { host = '', origin } = headers;
      if (!hosts.includes(host)) return `Host must be ${hosts.join(' or ')}`;
      const site = headers['sec-fetch-site'];
      if (site !== undefined && site !== 'same-origin' && !(isPage && method === 'GET')) {
        return 'a page of another origin sent this request';
      }
      if (origin !== undefined && origin !== `http://${host}`) return 'Origin is not this server';
      if (method === 'GET') return undefined;
      if (method !== 'POST') return `method ${method} is not served`;
      if (origin === undefined) return 'Origin is missing';
      if (headers['content-type'] !== 'application/json') return 'Content-Type must be application/json';
      return undefined;
    },
    isSignedIn({ cookie = '' }) {
      const values = cookie.split('; ').flatMap((pair) => {
        const [name, value] = pair.split('=');
        return name === cookieName && value !== undefined ? [value] : [];
      });
      return values.some((value) => isSame(value, session));
    },
    cookieFor: (offered) =>
      isSame(offered, token) ? `${cookieName}=${session}; Path=/; HttpOnly; SameSite=Strict` : undefined,
  };
}

/** In constant time, for texts of any length. */
const isSame = (one: string, other: string): boolean => timingSafeEqual(hashOf(one), hashOf(other));
const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest();
