import { describe, expect, it } from 'vitest';
import type { Container, KubePod } from '../../shared/kinds/types.ts';
import { imageTodo, offlineFindings } from './doctor-offline.ts';
import type { OfflineReading } from './offline-start.ts';

const pod = (name: string, container: Container): KubePod => ({
  metadata: { name, namespace: 'shop' },
  spec: { containers: [container] },
});
const read = (pods: readonly KubePod[], refusals: readonly string[] = [], isAnyUsable = true) =>
  ({ kind: 'read', pods, refusals, isAnyUsable }) as const;
const offline = (over: Partial<OfflineReading>): OfflineReading => ({
  remembered: read([]),
  staticPods: [],
  staticFaults: [],
  images: { kind: 'read', here: new Set(['web:1']) },
  ...over,
});

/** The line of one check. */
function lineOf(check: string, over: Partial<OfflineReading>, readyMessage?: string): string | undefined {
  const findings = offlineFindings({ runtime: 'podman' }, { offline: offline(over), readyMessage });
  const found = findings.filter((each) => each.check === check);
  expect(found.length).toBeLessThan(2);
  return found.map(
    ({ outcome, message, todo }) => `${outcome}: ${message}${todo === undefined ? '' : ` | ${todo}`}`,
  )[0];
}

describe('the remembered pods', () => {
  const web = pod('web', { image: 'web:1' });
  it.each<[string, OfflineReading['remembered'], RegExp]>([
    ['are on disk', read([web]), /^ok: 1 pods start without the API$/],
    ['are turned off', { kind: 'off' }, /^ok: off \(rememberPods: none\): only static pods/],
    ['were never written', read([], [], false), /^ok: no pods yet/],
    ['cannot be read', { kind: 'forbidden', why: 'EACCES: permission denied' }, /^failed: EACCES.* \| Run as root\.$/],
    [
      'are of another node',
      read([], ['its nodeName is "x"'], false),
      /^failed: .*cannot be used: its nodeName is "x" \| Start/,
    ],
    [
      'are incomplete',
      read([web], ['pods.json is not complete']),
      /^warning: the newest .*older ones start: pods\.json/,
    ],
  ])('%s', (_what, remembered, line) => {
    expect(lineOf('remembered', { remembered })).toMatch(line);
  });

  it('that the agent cannot write are a failure, with its reason', () => {
    const ready =
      'kubelet is posting ready status. WARNING: swap; the pods of this machine cannot be remembered: ENOSPC';
    const line = lineOf('remembered', { remembered: read([web]) }, ready);
    expect(line).toMatch(/^failed: the pods of this machine cannot be remembered: ENOSPC \| Repair or free the disk/);
    expect(lineOf('remembered', { remembered: read([web]) }, ready.slice(ready.indexOf('the pods')))).toBe(line);
    expect(lineOf('remembered', { remembered: read([web]) }, 'kubelet is posting ready status')).toMatch(/^ok/);
  });
});

describe('the images', () => {
  const remembered = (...pods: readonly KubePod[]) => ({ remembered: read(pods) });
  const web = pod('web', { image: 'web:1' });

  it('are all here, or not needed', () => {
    expect(lineOf('offline-images', remembered(web))).toBe('ok: all 1 are here');
    expect(lineOf('offline-images', {})).toBe('ok: no pod that starts without the API needs an image');
  });

  it('that are missing or always pulled are a warning, with their pods and what to do', () => {
    const lacking = remembered(web, pod('queue', { image: 'queue:2' }), pod('api', { image: 'api' }));
    expect(lineOf('offline-images', lacking)).toBe(
      'warning: would not start without a network: shop/api (api is always pulled), shop/queue (queue:2 is missing)' +
        ' | Missing: podman pull IMAGE. Always pulled: set imagePullPolicy: IfNotPresent, and a tag other than latest.',
    );
    expect(lineOf('offline-images', remembered(pod('queue', { image: 'queue:2' })))).toMatch(/pull IMAGE\.$/);
  });

  it('are named for 10 pods at most', () => {
    const many = Array.from({ length: 12 }, (_, index) => pod(`queue-${index}`, { image: 'queue:2' }));
    const line = lineOf('offline-images', remembered(...many));
    expect([line?.match(/shop\/queue/g)?.length, line?.includes(', and 2 more')]).toEqual([10, true]);
  });

  it('are not checked without an answer of podman, and not without the remembered pods', () => {
    const failed = { images: { kind: 'failed', why: 'podman: ENOENT' } } as const;
    expect(lineOf('offline-images', failed)).toBe(
      'warning: not checked: podman: ENOENT | Repeat this when podman answers.',
    );
    expect(lineOf('offline-images', { remembered: { kind: 'forbidden', why: 'EACCES' } })).toBeUndefined();
  });

  it('of a static pod that cannot be read are a warning', () => {
    const findings = offlineFindings(
      { runtime: 'podman' },
      { offline: offline({ staticFaults: ['static pods cannot be read: ENOENT'] }), readyMessage: undefined },
    );
    expect(findings.map(({ outcome }) => outcome)).toEqual(['ok', 'warning', 'ok']);
  });

  it.each([
    ['exec', ['remembered']],
    ['none', []],
  ] as const)('are no check with the runtime %s', (runtime, checks) => {
    const readings = { offline: offline(remembered(pod('queue', { image: 'queue:2' }))), readyMessage: undefined };
    expect(offlineFindings({ runtime }, readings).map(({ check }) => check)).toEqual(checks);
  });
});

it('only what images lack is to be done', () => {
  const image = (state: 'missing' | 'alwaysPulled') => ({ image: 'web', state, pods: ['shop/web'] });
  expect(imageTodo([image('missing')])).toBe('Missing: podman pull IMAGE.');
  expect(imageTodo([image('alwaysPulled')])).toMatch(/^Always pulled: /);
  expect(imageTodo([image('missing'), image('alwaysPulled')])).toMatch(/^Missing: .*IMAGE\. Always pulled: /);
});
