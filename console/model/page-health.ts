/** Whether what the page shows is current, and one sentence for each way in which it is not. */
import { formatAge } from '../../shared/kubernetes/age.ts';

/** A source of data that failed at its last read. */
export interface Problem {
  readonly message: string;
  /** HTTP status; 0 without an answer. */
  readonly status: number;
  /** Of the API, and not of the server of the page. */
  readonly isOfApi: boolean;
  /** Epoch milliseconds. */
  readonly sinceMs: number;
}

export interface PageHealth {
  /** The values of the page are not current. */
  readonly banner: string | undefined;
  /** When the last complete data arrived. Epoch milliseconds. */
  readonly goodAtMs: number | undefined;
  /** Parts that are missing while the rest is current. */
  readonly notices: readonly string[];
}

const FORBIDDEN = 403;
const UNAUTHORIZED = 401;

/** Without one of these sources, the whole page is old. */
const ESSENTIAL: ReadonlySet<string> = new Set(['Nodes', 'The status of the cluster']);

export const SIGN_IN = 'You are not signed in: run `npx nodekeeper console` and open the address that it prints.';

/** Of a list that was read in part. */
export const cutText = (what: string, read: number): string =>
  `there are more ${what} than the ${read} that this page reads: its counts are of these.`;

/** `cutAt`: the number of Nodes that were read, if there are more. */
export function pageHealthOf(
  problems: ReadonlyMap<string, Problem>,
  goodAtMs: number | undefined,
  nowMs: number,
  cutAt?: number,
): PageHealth {
  const failing = [...problems].filter(([source, { status }]) => ESSENTIAL.has(source) && status !== FORBIDDEN);
  const signedOut = [...problems.values()].find(({ status }) => status === UNAUTHORIZED);
  const isOld = failing.length > 0 || signedOut !== undefined;
  const notices = [...problems]
    .filter(([, { status }]) => !isOld || status === FORBIDDEN)
    .map(([source, each]) => noticeOf(source, each, nowMs));
  if (cutAt !== undefined) notices.push(`Nodes: ${cutText('nodes', cutAt)}`);
  if (!isOld) return { banner: undefined, goodAtMs, notices };
  const [alone] = failing.length === 1 && signedOut === undefined ? failing : [];
  return { banner: bannerOf(failing, signedOut, goodAtMs, nowMs), goodAtMs: alone?.[1].sinceMs ?? goodAtMs, notices };
}

function bannerOf(
  failing: readonly (readonly [source: string, problem: Problem])[],
  signedOut: Problem | undefined,
  goodAtMs: number | undefined,
  nowMs: number,
): string {
  const old =
    goodAtMs === undefined ? 'Nothing has been read yet.' : `What you see is ${formatAge(nowMs - goodAtMs)} old.`;
  if (signedOut !== undefined && !signedOut.isOfApi) return SIGN_IN;
  if (signedOut !== undefined) {
    return `The API refuses the token of this console: it has expired, or is that of another cluster. ${old}`;
  }
  const [[source, { message, sinceMs }]] = failing as [readonly [string, Problem]];
  if (failing.length < ESSENTIAL.size) {
    return `${source}: no changes for ${formatAge(nowMs - sinceMs)}: ${sentence(message)}`;
  }
  return `No data from the API for ${formatAge(nowMs - (goodAtMs ?? sinceMs))}: ${sentence(message)} ${old}`;
}

const noticeOf = (source: string, { status, message, sinceMs }: Problem, nowMs: number): string =>
  status === FORBIDDEN
    ? `${source}: not permitted to your user. ${sentence(message)}`
    : `${source}: stale for ${formatAge(nowMs - sinceMs)}. ${sentence(message)}`;

const sentence = (text: string): string => (/[.?!]$/.test(text) ? text : `${text}.`);

/** Clocks that differ by less are equal: the API sends whole seconds. */
const SKEW_MS_MIN = 3_000;

/** By how much the clock of the cluster is ahead of ours; 0 while they agree. */
export const skewOf = (serverMs: number, ownMs: number): number =>
  Math.abs(serverMs - ownMs) < SKEW_MS_MIN ? 0 : serverMs - ownMs;

/** undefined while the clocks agree. */
export const skewText = (skewMs: number): string | undefined =>
  skewMs === 0
    ? undefined
    : `The clock of this machine is ${formatAge(Math.abs(skewMs))} ${skewMs > 0 ? 'behind' : 'ahead of'} that of the cluster. Times on this page are those of the cluster.`;
