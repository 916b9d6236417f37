import { describe, expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import { terminatePods } from './pod-termination.ts';

const buckets = [
  { priority: 0, shutdownGracePeriodSeconds: 20 },
  { priority: 5, shutdownGracePeriodSeconds: 5 },
  { priority: 10, shutdownGracePeriodSeconds: 10 },
];
const podOf = (name: string, priority: number, terminationGracePeriodSeconds = 30): KubePod => ({
  metadata: { name },
  spec: { priority, terminationGracePeriodSeconds },
});

interface Given {
  readonly pods: readonly KubePod[];
  /** How long the kill of a pod needs, by name. Milliseconds. */
  readonly killMs?: Readonly<Record<string, number>>;
  readonly unmount?: (pods: readonly KubePod[], signal: AbortSignal) => Promise<void>;
  readonly periods?: typeof buckets;
}

function world({ pods, killMs = {}, unmount, periods = buckets }: Given) {
  const time = new SteppedTime(1_700_000_000_000);
  const lines: string[] = [];
  const logs: string[] = [];
  const say = (text: string) => void lines.push(`${time.monotonicMs()} ${text}`);
  const stop = new AbortController();
  void terminatePods(
    {
      buckets: periods,
      time,
      log: { ...silentLog, info: (message) => logs.push(message), error: (message) => logs.push(message) },
      activePods: () => pods,
      async killPod({ metadata }, graceSeconds, change) {
        say(`kill ${metadata.name} ${graceSeconds} ${change({ phase: 'Running' })['phase']}`);
        const needsMs = killMs[metadata.name ?? ''];
        if (needsMs !== undefined) await time.sleep(needsMs);
      },
      ...(unmount === undefined ? {} : { volumesUnmounted: unmount }),
    },
    stop.signal,
  ).then(() => say('over'));
  return { time, lines, logs, say, stop };
}

describe('the termination of pods', () => {
  it('acts group by group, lowest priority first, each pod with its own grace or less', async () => {
    const pods = [podOf('high', 10, 3), podOf('low', 0), podOf('other', 0, 7)];
    const { time, lines, logs } = world({ pods, killMs: { low: 2_000, other: 1_000 } });
    await time.pass(60_000);
    expect(lines).toEqual(['0 kill low 20 Failed', '0 kill other 7 Failed', '2000 kill high 3 Failed', '2000 over']);
    expect(logs).toEqual([]);
  });

  it('waits for no pod of a group without a period', async () => {
    const periods = [{ priority: 0, shutdownGracePeriodSeconds: 0 }];
    const { time, lines, logs } = world({ pods: [podOf('low', 0)], killMs: { low: 60_000 }, periods });
    await time.pass(1);
    expect([lines, logs]).toEqual([['0 kill low 0 Failed', '0 over'], []]);
  });

  it('ends at a stop: the time-out is no finding, and no further group begins', async () => {
    const { time, lines, logs, stop } = world({ pods: [podOf('low', 0), podOf('high', 10)], killMs: { low: 60_000 } });
    await time.pass(1_000);
    stop.abort();
    await time.pass(60_000);
    expect([lines, logs]).toEqual([['0 kill low 20 Failed', '1000 over'], []]);
  });

  it('waits for the volumes of each group, within its period', async () => {
    const asked: string[] = [];
    const signals: AbortSignal[] = [];
    let time: SteppedTime | undefined;
    const unmount = async (pods: readonly KubePod[], signal: AbortSignal) => {
      asked.push(pods.map(({ metadata }) => metadata.name).join());
      signals.push(signal);
      if (asked.length === 1) await time?.sleep(3_000);
      if (asked.length === 2) await time?.sleep(60_000, signal);
    };
    const given = world({ pods: [podOf('low', 0), podOf('high', 10)], unmount });
    time = given.time;
    await given.time.pass(60_000);
    expect(asked).toEqual(['low', 'high']);
    expect(given.lines.slice(1)).toEqual(['3000 kill high 10 Failed', '13000 over']);
    expect(given.logs).toEqual(['Shutdown manager pod killing time out']);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });

  it('asks for no volumes once the period is over, and continues when they stay mounted', async () => {
    const asked: string[] = [];
    const late = world({
      pods: [podOf('low', 0)],
      killMs: { low: 30_000 },
      unmount: async () => void asked.push('asked'),
    });
    await late.time.pass(60_000);
    expect(asked).toEqual([]);
    const failing = world({ pods: [podOf('low', 0)], unmount: () => Promise.reject(new Error('busy')) });
    await failing.time.pass(1);
    expect(failing.lines.at(-1)).toBe('0 over');
    expect(failing.logs).toEqual([
      'Failed while waiting for all the volumes belonging to Pods in this group to unmount',
    ]);
  });
});
