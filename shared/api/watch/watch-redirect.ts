/** A watch as a redirect to the streaming function, which can stream. The HTTP API cannot. */

import type { WatchTicketIssuer } from '../../access/watch-tickets.ts';
import type { HttpResponse } from '../../kubernetes/http.ts';
import type { AnswerWatch, Call } from '../call.ts';
import { beginsWithState } from './watch-request.ts';

/** Query parameter that carries the ticket. */
export const TICKET_PARAMETER = 'nodekeeper-ticket';

/** Query parameter with the version of the resource when the API received a watch that begins with the state. */
export const STATE_VERSION_PARAMETER = 'nodekeeper-state-version';

/** Path and query of a watch as the ticket signs them. Issuer and verifier must compute the same text. */
export function watchTarget(path: string, query: URLSearchParams): string {
  const plain = new URLSearchParams(query);
  plain.delete(TICKET_PARAMETER);
  return `${path}?${plain}`;
}

/**
 * The version of the state is read here: a start of the streaming function may need a second, and the client receives
 * the changes of this second in their order.
 *
 * @param watchUrl URL of the streaming function, without a trailing slash
 */
export const redirectWatches =
  (watchUrl: string, tickets: WatchTicketIssuer): AnswerWatch =>
  async (source, watch, call) => {
    const begins = beginsWithState(source, watch);
    if (begins) await source.storage.makeInitial?.();
    const more = begins ? { [STATE_VERSION_PARAMETER]: await source.storage.listVersion() } : {};
    return redirectWithTicket({ watchUrl, tickets }, call, more);
  };

export interface Redirection {
  readonly watchUrl: string;
  readonly tickets: WatchTicketIssuer;
}

/** 307 to the streaming function. `more`: query parameters that the ticket covers besides those of the request. */
export async function redirectWithTicket(
  { watchUrl, tickets }: Redirection,
  { request, user, caller, nowMs }: Pick<Call, 'request' | 'user' | 'caller' | 'nowMs'>,
  more: Readonly<Record<string, string>> = {},
): Promise<HttpResponse> {
  const query = new URLSearchParams(request.query);
  for (const [name, value] of Object.entries(more)) query.set(name, value);
  const target = watchTarget(request.path, query);
  const ticket = await tickets.issue({ user, target, ...(caller === user ? {} : { caller }) }, nowMs);
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
}

const encodedPath = (path: string): string => path.split('/').map(encodeURIComponent).join('/');
