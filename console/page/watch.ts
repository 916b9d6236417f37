/** Lists and then watches one kind, for as long as the page is open. */
import { type Backoff, backoffMs } from '../../shared/backoff.ts';
import { API, RequestError, readPages, refusalOf } from './requests.ts';

export interface WatchTarget<T> {
  readonly path: string;
  readonly pagesMax: number;
  /** A list begins: what it does not contain no longer exists. */
  onListStart(): void;
  onListPage(items: readonly T[]): void;
  /** `isCut`: there are more objects than are read. */
  onListEnd(isCut: boolean): void;
  onChange(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): void;
  /** `undefined`: changes arrive. Otherwise why they do not. */
  onState(problem: unknown): void;
}

interface WatchLine<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: T & { readonly metadata?: { readonly resourceVersion?: string }; readonly code?: number };
}

const PAUSES: Backoff = { firstMs: 1_000, limitMs: 30_000, jitter: [0.5, 1] };
/** Bookmarks arrive once per minute. */
const QUIET_MS_MAX = 6 * 60_000;
const LINE_CHARACTERS_MAX = 4_000_000;

/** The version is too old to resume. */
class Expired extends Error {}

/** Returns when `signal` is aborted. */
export async function listAndWatch<T>(target: WatchTarget<T>, signal: AbortSignal): Promise<void> {
  let version = '';
  for (let failures = 0; !signal.aborted; ) {
    try {
      if (version === '') version = await listAll(target);
      version = await watchOnce(target, version, signal);
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      const isExpired = error instanceof Expired || (error instanceof RequestError && error.status === 410);
      if (isExpired) version = '';
      else target.onState(error);
      failures += 1;
      // Without the random part, all pages would return at once.
      await pause(backoffMs(PAUSES, failures - 1, Math.random()), signal);
    }
  }
}

async function listAll<T>(target: WatchTarget<T>): Promise<string> {
  target.onListStart();
  const { pagesMax } = target;
  let isCut = false;
  const version = await readPages<T>(
    target.path,
    {},
    {
      pagesMax,
      onPage: (items) => target.onListPage(items),
      onCut: () => {
        isCut = true;
      },
    },
  );
  target.onListEnd(isCut);
  return version;
}

/** One connection. Returns the version that the next one resumes at. */
async function watchOnce<T>(target: WatchTarget<T>, from: string, signal: AbortSignal): Promise<string> {
  const query = new URLSearchParams({ watch: '1', allowWatchBookmarks: 'true', resourceVersion: from });
  const quiet = new AbortController();
  let timer = setTimeout(() => quiet.abort(), QUIET_MS_MAX);
  let version = from;
  try {
    const response = await fetch(`${API}${target.path}?${query}`, { signal: AbortSignal.any([signal, quiet.signal]) });
    if (!response.ok) throw await refusalOf(response);
    if (response.body === null) throw new RequestError(0, 'The watch has no body.');
    target.onState(undefined);
    for await (const line of linesOf(response.body)) {
      clearTimeout(timer);
      timer = setTimeout(() => quiet.abort(), QUIET_MS_MAX);
      const { type, object } = JSON.parse(line) as WatchLine<T>;
      if (type === 'ERROR') {
        if (object.code === 410) throw new Expired('the version is too old');
        throw new RequestError(object.code ?? 0, 'The API ended the watch with an error.');
      }
      version = object.metadata?.resourceVersion ?? version;
      if (type !== 'BOOKMARK') target.onChange(type, object);
    }
    return version;
  } catch (error) {
    if (error instanceof RequestError || error instanceof Expired) throw error;
    throw new RequestError(0, 'The connection of the watch was lost.', { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>)) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LINE_CHARACTERS_MAX) throw new RequestError(0, 'A line of the watch is too long.');
    for (const line of lines) if (line !== '') yield line;
  }
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
