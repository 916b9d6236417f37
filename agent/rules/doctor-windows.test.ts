import { describe, expect, it } from 'vitest';
import { lastShutdown, type PreshutdownReading, preshutdownFindings } from './doctor-windows.ts';

const settings = {
  shutdownGracePeriodMs: 40_000,
  shutdownGracePeriodCriticalPodsMs: 10_000,
  shutdownGracePeriodByPodPriority: [],
};
const service: PreshutdownReading = {
  kind: 'service',
  name: 'nodekeeper-agent',
  timeoutMs: 50_000,
  dependencies: ['RpcSs'],
  order: ['x', 'Nodekeeper-Agent', 'rpcss'],
};
const lines = (read: PreshutdownReading, over = {}): string[] =>
  preshutdownFindings({ ...settings, ...over }, read).map(({ outcome, message }) => `${outcome} ${message}`);

describe('the doctor on Windows', () => {
  it('finds a service that Windows waits for', () => {
    expect(lines(service)).toEqual([
      'ok Windows waits 50 s for the service',
      'ok nodekeeper-agent is before RpcSs in PreshutdownOrder',
    ]);
    expect(lines({ ...service, dependencies: [], order: [] })).toHaveLength(1);
  });

  it.each<[string, PreshutdownReading, object, RegExp]>([
    ['no period', service, { shutdownGracePeriodMs: 0, shutdownGracePeriodCriticalPodsMs: 0 }, /^warning .*kills pods/],
    ['no service', { kind: 'absent' }, {}, /^failed the agent is no service/],
    ['no right', { kind: 'unreadable', message: 'access is denied (5)' }, {}, /^failed access is denied/],
    ['a short time-out', { ...service, timeoutMs: 5_000 }, {}, /^warning Windows waits 5 s, 40 s are configured/],
  ])('finds %s', (_name, read, over, expected) => {
    expect(lines(read, over)[0]).toMatch(expected);
  });

  it.each([[['RpcSs', 'nodekeeper-agent']], [['RpcSs']], [[]]])('finds that the order is %j', (order) => {
    expect(lines({ ...service, order })[1]).toMatch(/^warning .* is not before RpcSs/);
  });

  it.each([
    ['none', undefined, 'warning none is recorded'],
    [
      'an interrupted one',
      { startedAtMs: 1_000, endedAtMs: undefined },
      'failed began at .*, and Windows did not wait',
    ],
    [
      'one before the boot',
      { startedAtMs: 1_000, endedAtMs: 4_500 },
      'ok pods were terminated at .*, in 3.5 s, before',
    ],
    ['one of this boot', { startedAtMs: 1_000, endedAtMs: 9_500 }, 'warning pods were terminated at .*, after'],
  ])('describes the last shutdown: %s', (_name, last, expected) => {
    const { outcome, message } = lastShutdown({ last, bootedAtMs: 5_000 });
    expect(`${outcome} ${message}`).toMatch(new RegExp(`^${expected}`));
  });
});
