/** Measurements of the API of the run's cluster. */
import type { Calls, HttpAnswer, HttpRequest, HttpStream, Measuring } from '../calls.ts';
import type { Abandoned, HTTP_FACTS, ReservedStatus, Status } from '../http-facts.ts';
import type { MeasuresOf } from '../measures.ts';
import { REQUESTS_PER_SECOND } from '../plan.ts';

const VERSION: HttpRequest = { method: 'GET', url: '/version' };
const MAPS = '/api/v1/namespaces/default/configmaps';
const NODES = '/api/v1/nodes';
const CLUSTER_STATUS = '/apis/nodekeeper.dev/v1alpha1/clusterstatuses/cluster';
/** Longest time of a watch. One that its client abandons occupies an execution for this time. */
const WATCH_SECONDS_MAX = 15;
/** A reservation is in effect some seconds after it was accepted. */
const LOOKING_MS_MAX = 40_000;
const LOOK_MS = 2_000;
const REQUESTS_MAX = 50 * REQUESTS_PER_SECOND;
/** That many refusals show the limit. */
const THROTTLED_MAX = 20;
const AT_ONCE = 40;
const DELAY_MS_MAX = 30_000;

const watchOf = (path: string, seconds: number): HttpRequest => ({
  method: 'GET',
  url: `${path}?watch=1&timeoutSeconds=${seconds}`,
});
const isThrottled = (status: number): boolean => status === 429;
const statusOf = ({ status, text }: Pick<HttpAnswer, 'status' | 'text'>): Status => ({
  status,
  isOurs: /"(kind|gitVersion)":/.test(text),
});
const configMap = (name: string): HttpRequest => ({
  method: 'POST',
  url: MAPS,
  body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
});

/** The limit of the run is low: what it refuses is sent again. */
const answered = (calls: Calls, request: HttpRequest): Promise<HttpAnswer> =>
  untilAnswer(
    calls,
    () => calls.http(request),
    ({ status }) => !isThrottled(status),
  );

/** Looks until an answer is wanted, for `LOOKING_MS_MAX` at most. @returns the last answer */
async function untilAnswer<Answer>(
  calls: Calls,
  ask: () => Promise<Answer>,
  isWanted: (answer: Answer) => boolean,
): Promise<Answer> {
  const endMs = calls.nowMs() + LOOKING_MS_MAX;
  let answer = await ask();
  while (!isWanted(answer) && calls.nowMs() < endMs) {
    await calls.pause(LOOK_MS);
    answer = await ask();
  }
  return answer;
}

/** Reserves executions for a measurement, and releases them in each case. */
async function withReserved<Measured>(
  { calls }: Measuring,
  functionName: string,
  executions: number,
  measure: () => Promise<Measured>,
): Promise<Measured | { readonly refused: string }> {
  const refused = await calls.reserve(functionName, executions);
  if (refused !== undefined) return { refused };
  try {
    return await measure();
  } finally {
    await calls.reserve(functionName, undefined);
  }
}

const watchSeconds = ({ windowSeconds }: Measuring): number => Math.min(windowSeconds, WATCH_SECONDS_MAX);

async function openWatch({ calls }: Measuring, seconds: number): Promise<HttpStream> {
  return calls.stream(watchOf(MAPS, seconds));
}

export const MEASURE_HTTP: MeasuresOf<typeof HTTP_FACTS> = {
  async 'lambda-cold-start'({ calls }) {
    const { durationMs: firstMs } = await calls.http(VERSION);
    const later: number[] = [];
    for (let count = 0; count < 9; count += 1) later.push((await calls.http(VERSION)).durationMs);
    return { firstMs, medianMs: later.toSorted((a, b) => a - b)[4] ?? 0 };
  },

  async 'function-clock'({ calls, suffix }) {
    const { text, headers } = await answered(calls, configMap(`prove-clock-${suffix}`));
    const { metadata } = JSON.parse(text) as { readonly metadata?: { readonly creationTimestamp?: string } };
    return { createdMs: Date.parse(metadata?.creationTimestamp ?? ''), dateMs: Date.parse(String(headers['date'])) };
  },

  'http-api-header-size': async ({ calls }) =>
    statusOf(await answered(calls, { ...VERSION, headers: { 'x-prove': 'x'.repeat(10_500) } })),

  'http-api-body-size': async ({ calls, suffix }) => {
    const { body, ...request } = configMap(`prove-size-${suffix}`);
    return statusOf(
      await answered(calls, { ...request, body: { ...(body as object), data: { a: 'x'.repeat(6_500_000) } } }),
    );
  },

  async 'watch-redirect'({ calls }) {
    const { status, headers } = await answered(calls, watchOf(MAPS, 1));
    return { status, endpoint: calls.endpoint, location: String(headers['location'] ?? '') };
  },

  async 'url-change-delay'(measuring) {
    const { calls, suffix } = measuring;
    const watch = await openWatch(measuring, watchSeconds(measuring));
    const delaysMs: number[] = [];
    try {
      for (const name of ['one', 'two', 'three'].map((count) => `prove-${count}-${suffix}`)) {
        const arrival = watch.arrival(`"${name}"`, DELAY_MS_MAX);
        // Its fault is that of the measurement, unless the request has failed before.
        arrival.catch(() => {});
        await answered(calls, configMap(name));
        const storedAtMs = calls.nowMs();
        delaysMs.push(Math.max(0, (await arrival) - storedAtMs));
      }
    } finally {
      watch.abandon();
    }
    return { delaysMs };
  },

  async 'url-held-chunk'(measuring) {
    const { calls } = measuring;
    // The first watch measures.
    (await openWatch(measuring, 1)).abandon();
    const read = async () => {
      const { text } = await answered(calls, { method: 'GET', url: CLUSTER_STATUS });
      const { status } = JSON.parse(text) as { readonly status?: { readonly watches?: Watches } };
      return status?.watches;
    };
    const watches = await untilAnswer(calls, read, (found) => found !== undefined);
    return watches === undefined ? {} : { form: watches.form, paddingBytes: watches.paddingBytes ?? 0 };
  },

  async 'stream-delay'({ calls, suffix }) {
    const name = `prove-${suffix}`;
    await answered(calls, {
      method: 'POST',
      url: NODES,
      body: { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec: { unschedulable: true } },
    });
    const storedAtMs = calls.nowMs();
    try {
      while (calls.nowMs() - storedAtMs < DELAY_MS_MAX) {
        const { text } = await answered(calls, { method: 'GET', url: `${NODES}/${name}` });
        if (text.includes('node.kubernetes.io/unschedulable')) return { delayMs: calls.nowMs() - storedAtMs };
        await calls.pause(100);
      }
      return {};
    } finally {
      await answered(calls, { method: 'DELETE', url: `${NODES}/${name}` });
    }
  },

  'http-api-stopped-function': (measuring) =>
    withReserved(measuring, measuring.cluster.functions.api, 0, async () => {
      const ask = async (): Promise<Status> => statusOf(await measuring.calls.http(VERSION));
      return untilAnswer(measuring.calls, ask, ({ isOurs }) => !isOurs);
    }).then(statusOrRefused),

  'url-stopped-function': (measuring) =>
    withReserved(measuring, measuring.cluster.functions.watch, 0, async () => {
      const ask = async (): Promise<Status> => {
        const watch = await openWatch(measuring, 1);
        watch.abandon();
        // Nothing of the function is read: it answers 200 while it runs.
        return { status: watch.status, isOurs: watch.status === 200 };
      };
      return untilAnswer(measuring.calls, ask, ({ isOurs }) => !isOurs);
    }).then(statusOrRefused),

  async 'url-abandoned-stream'(measuring) {
    const measured = await withReserved(measuring, measuring.cluster.functions.watch, 1, () =>
      abandonedWatch(measuring),
    );
    return 'statusAfter' in measured
      ? measured
      : { ...measured, timeoutSeconds: watchSeconds(measuring), statusAfter: 0 };
  },

  async 'http-api-throttle'({ calls }) {
    const startedMs = calls.nowMs();
    const statuses: number[] = [];
    let begun = 0;
    const worker = async (): Promise<void> => {
      while (begun < REQUESTS_MAX && statuses.filter(isThrottled).length < THROTTLED_MAX) {
        begun += 1;
        statuses.push((await calls.http({ ...VERSION, isAnonymous: true })).status);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    const throttled = statuses.filter(isThrottled).length;
    return {
      sent: statuses.length,
      accepted: statuses.length - throttled,
      throttled,
      seconds: (calls.nowMs() - startedMs) / 1_000,
      requestsPerSecond: REQUESTS_PER_SECOND,
      burst: 2 * REQUESTS_PER_SECOND,
    };
  },
};

interface Watches {
  readonly form: string;
  readonly paddingBytes?: number;
}

const statusOrRefused = (measured: Status | { readonly refused: string }): ReservedStatus =>
  'refused' in measured ? { status: 0, isOurs: false, ...measured } : measured;

async function abandonedWatch(measuring: Measuring): Promise<Abandoned> {
  const { calls } = measuring;
  const statusOfWatch = async (): Promise<number> => {
    const watch = await openWatch(measuring, watchSeconds(measuring));
    watch.abandon();
    return watch.status;
  };
  // Earlier watches may still run.
  const first = await untilAnswer(calls, statusOfWatch, (status) => status === 200);
  if (first !== 200) throw new Error(`no watch was accepted: ${first}`);
  const abandonedAtMs = calls.nowMs();
  const statusAfter = await statusOfWatch();
  const last = statusAfter === 200 ? 200 : await untilAnswer(calls, statusOfWatch, (status) => status === 200);
  const freeAfterSeconds = (calls.nowMs() - abandonedAtMs) / 1_000;
  return { timeoutSeconds: watchSeconds(measuring), statusAfter, ...(last === 200 ? { freeAfterSeconds } : {}) };
}
