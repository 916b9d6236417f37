import { expect, it } from 'vitest';
import type { AgentConfig } from '../config.ts';
import { LINUX_DEFAULTS, WINDOWS_DEFAULTS } from './system-defaults.ts';

it.each([
  ['/srv', true, false],
  ['srv/x', false, false],
  ['C:\\srv', false, true],
  ['d:/srv', false, true],
  ['C:srv', false, false],
  ['xC:\\srv', false, false],
  ['\\\\server\\share', false, false],
  ['', false, false],
])('the path %j is absolute on Linux: %s, on Windows: %s', (path, onLinux, onWindows) => {
  expect([LINUX_DEFAULTS.isAbsolutePath(path), WINDOWS_DEFAULTS.isAbsolutePath(path)]).toEqual([onLinux, onWindows]);
});

it('without the gate of a graceful shutdown Windows has none', () => {
  const config = {
    nodeName: 'n',
    shutdownGracePeriodMs: 30_000,
    shutdownGracePeriodCriticalPodsMs: 10_000,
    shutdownGracePeriodByPodPriority: [{ priority: 0, shutdownGracePeriodSeconds: 5 }],
  } as unknown as AgentConfig;
  expect(WINDOWS_DEFAULTS.gates['WindowsGracefulNodeShutdown']?.(config)).toEqual({
    nodeName: 'n',
    shutdownGracePeriodMs: 0,
    shutdownGracePeriodCriticalPodsMs: 0,
    shutdownGracePeriodByPodPriority: [],
  });
  expect(LINUX_DEFAULTS.gates['NodeSwap']?.(config)).toBe(config);
});
