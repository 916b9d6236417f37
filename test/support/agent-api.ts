/** An API of answers written down beforehand, and time that passes only when somebody sleeps: for the agent's loops. */
import type { KubeAnswer, KubeApi, KubeRequest } from '../../agent/ports/kube-api.ts';
import type { AgentMeter } from '../../agent/ports/meter.ts';
import type { AgentTime } from '../../agent/ports/time.ts';
import type { Log } from '../../shared/observability/log.ts';

export const answered = (status: number, body: unknown = {}): KubeAnswer => ({ kind: 'answered', status, body });
export const refused = (status: number, reason: string): KubeAnswer =>
  answered(status, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', reason, code: status });
export const timedOut: KubeAnswer = { kind: 'failed', cause: new Error('no answer') };

export interface ScriptedApi extends KubeApi {
  readonly requests: readonly KubeRequest[];
  reconnects(): number;
}

/** `answer` is asked for each request; undefined fails the test that sent it. */
export function scriptedApi(answer: (request: KubeRequest) => KubeAnswer | undefined): ScriptedApi {
  const requests: KubeRequest[] = [];
  let reconnects = 0;
  return {
    requests,
    reconnects: () => reconnects,
    async send(request) {
      const { signal: _signal, ...plain } = request;
      requests.push(structuredClone(plain));
      const given = answer(request);
      if (given === undefined) throw new Error(`no answer was written down for ${request.method} ${request.path}`);
      return given;
    },
    reconnect() {
      reconnects += 1;
    },
  };
}

/** Answers in order, each used once. */
export function inOrder(answers: readonly KubeAnswer[]): () => KubeAnswer | undefined {
  let next = 0;
  return () => answers[next++];
}

export interface VirtualTime extends AgentTime {
  /** Every wait there was. Milliseconds. */
  readonly waits: readonly number[];
}

/** Sleeping needs no time but is recorded; `onSleep` sees each wait, and may stop the loop. */
export function virtualTime(startMs: number, onSleep: (waits: readonly number[]) => void = () => {}): VirtualTime {
  let nowMs = startMs;
  const waits: number[] = [];
  return {
    waits,
    nowMs: () => nowMs,
    // Other origins: a rule that mixes two clocks fails.
    monotonicMs: () => nowMs - startMs,
    uptimeMs: () => 500_000 + nowMs - startMs,
    async sleep(milliseconds, signal) {
      if (signal?.aborted) return;
      waits.push(milliseconds);
      nowMs += milliseconds;
      onSleep(waits);
    },
  };
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
export const silentMeter: AgentMeter = { count() {}, gauge() {}, observe() {} };
