import { expect, it } from 'vitest';
import type { KubePod, Volume } from '../../../shared/kinds/types.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import { VolumeLimits } from './volume-limits.ts';

const START_MS = 1_700_000_000_000;
const podOf = (name: string, volumes: Volume[], more: object = {}): KubePod => ({
  metadata: { name, namespace: 'ns', uid: `${name}-uid` },
  spec: { volumes, ...more },
});
const limited = (name: string) => ({ name, emptyDir: { sizeLimit: '1Mi' } });

/** `used` by pod uid and volume. */
function world(pods: readonly KubePod[], used: Readonly<Record<string, number>>) {
  const time = new SteppedTime(START_MS);
  const acts: unknown[] = [];
  const warnings: unknown[] = [];
  const measured: string[] = [];
  const limits = new VolumeLimits({
    inputs: {
      async usedBytes({ podUid, volume }) {
        measured.push(`${podUid}/${volume}`);
        const bytes = used[`${podUid}/${volume}`];
        if (bytes === undefined) throw new Error('EIO');
        return bytes;
      },
    },
    time,
    log: { ...silentLog, warn: (_message, fields) => warnings.push(fields) },
    activePods: () => pods,
    async killPod({ metadata }, graceSeconds, change) {
      acts.push([metadata.name, graceSeconds, change({ phase: 'Running' })]);
    },
    recordEvent: ({ metadata }, event) => acts.push([metadata.name, event]),
  });
  const stop = new AbortController();
  const running = limits.run(stop.signal);
  const end = async () => {
    stop.abort();
    await running;
  };
  return { time, acts, warnings, measured, end };
}

it('evicts a pod above the limit of a volume, after a minute', async () => {
  const volumes = [{ name: 'free', emptyDir: {} }, limited('a'), limited('b'), limited('c')];
  const used = { 'p-uid/a': 2 ** 20, 'p-uid/b': 2 ** 20 + 1, 'p-uid/c': 2 ** 21 };
  const { time, acts, measured, end } = world([podOf('p', volumes)], used);
  await time.pass(59_999);
  expect(measured).toEqual([]);
  await time.pass(1);
  const message = 'Usage of EmptyDir volume "b" exceeds the limit "1Mi". ';
  expect(acts).toEqual([
    ['p', { type: 'Warning', reason: 'Evicted', message }],
    ['p', 1, expect.objectContaining({ phase: 'Failed', reason: 'Evicted', message })],
  ]);
  expect(measured).toEqual(['p-uid/a', 'p-uid/b']);
  await end();
});

it('leaves a critical pod, and checks the others when one cannot be measured', async () => {
  const critical = podOf('critical', [limited('a')], { priority: 2_000_000_000 });
  const pods = [podOf('broken', [limited('a')]), critical, podOf('p', [limited('a')])];
  const { time, acts, warnings, measured, end } = world(pods, { 'critical-uid/a': 2 ** 21, 'p-uid/a': 2 ** 21 });
  await time.pass(60_000);
  expect(measured).toEqual(['broken-uid/a', 'critical-uid/a', 'p-uid/a']);
  expect(acts.map((each) => (each as string[])[0])).toEqual(['p', 'p']);
  expect(warnings).toEqual([{ namespace: 'ns', pod: 'broken', why: 'EIO' }]);
  await end();
});

it('checks every minute until it is stopped', async () => {
  const { time, measured, end } = world([podOf('p', [limited('a')])], { 'p-uid/a': 0 });
  await time.pass(180_000);
  expect(measured).toHaveLength(3);
  await end();
  await time.pass(180_000);
  expect(measured).toHaveLength(3);
});

it('measures nothing of a pod without volumes', async () => {
  const { time, measured, warnings, end } = world([{ metadata: { name: 'p' } }], {});
  await time.pass(60_000);
  expect([measured, warnings]).toEqual([[], []]);
  await end();
});
