/** Requests of the page to the server of the console. */

import { clusterClock } from './clock.ts';

/** The console or the API refused a request, or there was no response. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  /** HTTP status; 0 without a response. */
  readonly status: number;
  /** The API answered, and not the server of the page. */
  readonly isOfApi: boolean;
  constructor(status: number, message: string, options: { readonly cause?: unknown; readonly isOfApi?: boolean } = {}) {
    super(message, options);
    this.status = status;
    this.isOfApi = options.isOfApi ?? false;
  }
}

export const API = '/forward';
const TIMEOUT_MS = 30_000;
const TOKEN = /^#token=([\w-]+)$/;

/**
 * Exchanges the token of the address for a cookie, and removes it from the address and the history first: a view that
 * the user opens meanwhile stays open.
 */
export async function signIn(): Promise<void> {
  const token = TOKEN.exec(location.hash)?.[1];
  if (token === undefined) return;
  history.replaceState(undefined, '', '/');
  await send('/session', { method: 'POST', body: { token } });
}

interface Send {
  readonly method?: 'GET' | 'POST';
  readonly body?: unknown;
}

async function send(path: string, { method = 'GET', body }: Send = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
  } catch (cause) {
    throw new RequestError(0, 'The console does not answer. Is the command still running?', { cause });
  }
  if (response.ok) {
    if (path.startsWith(API)) clusterClock.compare(response.headers.get('date'));
    return response;
  }
  throw await refusalOf(response);
}

/** With the message of a Kubernetes Status, or the text of the console. */
export async function refusalOf(response: Response): Promise<RequestError> {
  const { status } = response;
  const text = await response.text();
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    if (typeof message === 'string') return new RequestError(status, message, { isOfApi: true });
  } catch {
    // Not a Status.
  }
  return new RequestError(status, text === '' ? `HTTP status ${status}` : text);
}

export const readText = async (path: string): Promise<string> => await (await send(path)).text();
export const readObject = async <T>(path: string): Promise<T> => (await (await send(path)).json()) as T;
/** Returns the answer of the API. */
export const postAction = async <T>(body: object): Promise<T> =>
  (await (await send('/actions', { method: 'POST', body })).json()) as T;

interface ObjectList<T> {
  readonly items?: readonly T[];
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
}

const PAGE_OBJECTS = 500;

interface Pages<T> {
  readonly pagesMax: number;
  readonly onPage: (items: readonly T[]) => void;
  /** There are more objects than are read. */
  readonly onCut?: () => void;
}

/**
 * Reads a list by pages. `onPage` keeps what the page needs: the whole objects are dropped after each call.
 * Returns the version at which a watch can follow.
 */
export async function readPages<T>(
  path: string,
  query: Readonly<Record<string, string>>,
  { pagesMax, onPage, onCut }: Pages<T>,
): Promise<string> {
  let after = '';
  let version = '';
  for (let page = 0; page < pagesMax; page += 1) {
    const search = new URLSearchParams({ ...query, limit: String(PAGE_OBJECTS), ...(after && { continue: after }) });
    const { items = [], metadata = {} } = await readObject<ObjectList<T>>(`${API}${path}?${search}`);
    onPage(items);
    // The version is that of the first page: a change during the later ones is then sent again by the watch.
    if (page === 0) version = metadata.resourceVersion ?? '';
    after = metadata.continue ?? '';
    if (after === '') return version;
  }
  onCut?.();
  return version;
}
