/** A watch as a redirect to the watch function, which can stream. The HTTP API cannot. */
import type { WatchTicketIssuer } from '../../ports/watch-tickets.ts';
import type { AnswerWatch } from '../request/call.ts';

/** Query parameter that carries the ticket. */
export const TICKET_PARAMETER = 'nodekeeper-ticket';

/** Path and query of a watch as the ticket signs them. Issuer and verifier must compute the same text. */
export function watchTarget(path: string, query: URLSearchParams): string {
  const plain = new URLSearchParams(query);
  plain.delete(TICKET_PARAMETER);
  return `${path}?${plain}`;
}

/** @param watchUrl URL of the watch function, without a trailing slash */
export function redirectWatches(watchUrl: string, tickets: WatchTicketIssuer): AnswerWatch {
  return async (_source, _watch, { request, user, nowMs }) => {
    const target = watchTarget(request.path, request.query);
    const ticket = await tickets.issue({ user, target }, nowMs);
    return {
      status: 307,
      headers: {
        // The path was decoded by the HTTP API, and a header holds only ASCII.
        location: `${watchUrl}${encodedPath(request.path)}${target.slice(request.path.length)}&${TICKET_PARAMETER}=${encodeURIComponent(ticket)}`,
        'cache-control': 'no-store',
        'content-length': '0',
      },
      body: '',
    };
  };
}

const encodedPath = (path: string): string => path.split('/').map(encodeURIComponent).join('/');
