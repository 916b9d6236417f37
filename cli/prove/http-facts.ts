/** Facts about the HTTP API, the function URL and Lambda, as a client sees them. Pure. */
import { fact, holdsIf, unknown, type Verdict } from './verdict.ts';

export interface Status {
  readonly status: number;
  /** The body is one of the Kubernetes API: our function answered, not AWS. */
  readonly isOurs: boolean;
}

export interface ReservedStatus extends Status {
  /** Why Lambda refused to change the reservation. Absent: it did not. */
  readonly refused?: string;
}

export interface Abandoned {
  readonly refused?: string;
  /** Longest time of the abandoned watch. Seconds. */
  readonly timeoutSeconds: number;
  /** Status of a watch right after the client of the only execution had disconnected. */
  readonly statusAfter: number;
  /** When the next watch was accepted, counted from the disconnection. Absent: it was not. Seconds. */
  readonly freeAfterSeconds?: number;
}

/** The HTTP API of the run refuses what is above its low limit. That is no answer to another question. */
const THROTTLED = 429;

const statusIs =
  (expected: number) =>
  ({ status, isOurs }: Status): Verdict => {
    const reason = `${status}${isOurs ? ' of the function' : ''}`;
    if (status === THROTTLED && expected !== THROTTLED) return unknown(reason);
    return holdsIf(status === expected && !isOurs, reason);
  };

const reservedIs =
  (expected: number) =>
  ({ refused, ...answer }: ReservedStatus): Verdict =>
    refused === undefined ? statusIs(expected)(answer) : unknown(`no execution could be reserved: ${refused}`);

const CHANGE_MS_MAX = 2_000;
const COLD_START_MS_MAX = 3_000;
const CLOCK_MS_MAX = 2_000;
const STREAM_MS_MAX = 5_000;
/** Throttling is "best effort" (API Gateway Developer Guide): some more may be accepted. */
const THROTTLE_SLACK = 1.5;

export const HTTP_FACTS = {
  'lambda-cold-start': fact<{ readonly firstMs: number; readonly medianMs: number }>({
    sentence: 'The first request to the largest function is answered within 3 s, initialisation included',
    source: 'Lambda Developer Guide, "Lambda execution environment"; the time is a target of this project',
    expected: 'at most 3,000 ms',
    evaluate: ({ firstMs, medianMs }) =>
      holdsIf(firstMs <= COLD_START_MS_MAX, `first ${firstMs.toFixed(0)} ms, then ${medianMs.toFixed(0)} ms`),
  }),
  'function-clock': fact<{ readonly createdMs: number; readonly dateMs: number }>({
    sentence: 'The clocks of functions agree with the date of their answers within 2 s',
    source: 'observed; Lambda documents no bound',
    expected: 'a difference of at most 2 s',
    evaluate: ({ createdMs, dateMs }) => {
      const apartMs = dateMs - createdMs;
      if (Number.isNaN(apartMs)) return unknown('no date in the answer');
      return holdsIf(Math.abs(apartMs) <= CLOCK_MS_MAX, `${apartMs / 1_000} s apart, in whole seconds`);
    },
  }),
  'http-api-header-size': fact<Status>({
    sentence: 'An HTTP API answers 431 to more than 10,240 bytes of request line and headers',
    source: 'API Gateway Developer Guide, "Quotas for configuring and running an HTTP API"',
    expected: '431',
    evaluate: statusIs(431),
  }),
  'http-api-body-size': fact<Status>({
    sentence: 'An HTTP API answers 413 to a body above the 6 MB that a function accepts',
    source: 'Lambda Developer Guide, "Lambda quotas"; the status is observed',
    expected: '413',
    evaluate: statusIs(413),
  }),
  'watch-redirect': fact<{ readonly status: number; readonly endpoint: string; readonly location: string }>({
    sentence: 'A redirect of a watch passes the HTTP API unchanged, and names the function URL',
    source: 'API Gateway Developer Guide, "Create AWS Lambda proxy integrations for HTTP APIs in API Gateway"',
    expected: '307 to another host, by HTTPS',
    evaluate: ({ status, endpoint, location }) => {
      const reason = `${status} to ${location === '' ? 'nowhere' : new URL(location).host}`;
      if (status === THROTTLED) return unknown(reason);
      return holdsIf(
        status === 307 && location.startsWith('https://') && new URL(location).host !== new URL(endpoint).host,
        reason,
      );
    },
  }),
  'url-change-delay': fact<{ readonly delaysMs: readonly number[] }>({
    sentence: 'A single change arrives at a watch through the function URL within 2 s',
    source: 'Lambda Developer Guide, "Response streaming for Lambda functions"',
    expected: 'each of three changes within 2,000 ms',
    evaluate: ({ delaysMs }) =>
      delaysMs.length === 0
        ? unknown('no change was measured')
        : holdsIf(Math.max(...delaysMs) <= CHANGE_MS_MAX, `${delaysMs.map((ms) => ms.toFixed(0)).join(', ')} ms`),
  }),
  'url-held-chunk': fact<{ readonly form?: string; readonly paddingBytes?: number }>({
    sentence: 'A function URL delivers a small chunk within a second when at most one more chunk follows',
    source: 'observed (docs/decisions/0053)',
    expected: 'at most 1 byte of padding',
    evaluate: ({ form, paddingBytes = 0 }) => {
      if (form === undefined) return unknown('the cluster has not measured it');
      if (form === 'LongPoll') return holdsIf(false, 'no padding delivers a chunk');
      return holdsIf(paddingBytes <= 1, `${paddingBytes} bytes of padding deliver it`);
    },
  }),
  'stream-delay': fact<{ readonly delayMs?: number }>({
    sentence: 'A change in a table reaches the function behind its stream, and its effect is stored, within 5 s',
    source: 'DynamoDB Developer Guide, "Change data capture for DynamoDB Streams"; AWS documents no bound',
    expected: 'at most 5,000 ms',
    evaluate: ({ delayMs }) =>
      delayMs === undefined
        ? holdsIf(false, 'no effect was seen')
        : holdsIf(delayMs <= STREAM_MS_MAX, `${delayMs.toFixed(0)} ms`),
  }),
  'http-api-stopped-function': fact<ReservedStatus>({
    sentence: 'An HTTP API answers 503 for a throttled function',
    source: 'observed, not documented',
    expected: '503, not of the function',
    evaluate: reservedIs(503),
  }),
  'url-stopped-function': fact<ReservedStatus>({
    sentence: 'A function URL answers 429 for a throttled function',
    source: 'Lambda Developer Guide, "Throttling function URLs"',
    expected: '429, not of the function',
    evaluate: reservedIs(429),
  }),
  'url-abandoned-stream': fact<Abandoned>({
    sentence: 'A streamed response runs on after its client has disconnected, and occupies an execution',
    source: 'Lambda Developer Guide, "Response streaming for Lambda functions"',
    expected: '429 at once, and accepted when the abandoned stream is over',
    evaluate: ({ refused, timeoutSeconds, statusAfter, freeAfterSeconds }) => {
      if (refused !== undefined) return unknown(`no execution could be reserved: ${refused}`);
      const free =
        freeAfterSeconds === undefined ? 'never accepted' : `accepted after ${freeAfterSeconds.toFixed(1)} s`;
      const reason = `${statusAfter} at once, ${free}, with a watch of ${timeoutSeconds} s`;
      if (freeAfterSeconds === undefined) return unknown(reason);
      return holdsIf(statusAfter === 429 && freeAfterSeconds >= timeoutSeconds / 2, reason);
    },
  }),
  'http-api-throttle': fact<{
    readonly sent: number;
    readonly accepted: number;
    readonly throttled: number;
    readonly seconds: number;
    readonly requestsPerSecond: number;
    readonly burst: number;
  }>({
    sentence: 'An HTTP API answers 429 above the rate and the burst of its stage',
    source: 'API Gateway Developer Guide, "Throttle requests to your HTTP APIs for better throughput"',
    expected: 'no more accepted than the burst and the rate allow, with half of that in addition',
    evaluate: ({ sent, accepted, throttled, seconds, requestsPerSecond, burst }) => {
      const allowed = (burst + requestsPerSecond * seconds) * THROTTLE_SLACK;
      const reason = `${accepted} of ${sent} accepted in ${seconds.toFixed(1)} s, ${throttled} answered 429`;
      if (throttled === 0 && sent <= allowed) return unknown(`${reason}: too slow to exceed ${allowed.toFixed(0)}`);
      return holdsIf(throttled > 0 && accepted <= allowed, `${reason}, ${allowed.toFixed(0)} allowed`);
    },
  }),
};
