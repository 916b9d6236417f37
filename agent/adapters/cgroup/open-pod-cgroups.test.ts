import { expect, it } from 'vitest';
import { silentLog } from '../../../test/support/agent-api.ts';
import type { AgentConfig } from '../../config.ts';
import { cgroupNode, openPodCgroups } from './open-pod-cgroups.ts';

const CONFIG = {
  cgroupRoot: '/nonexistent/nodekeeper',
  swapBehavior: 'LimitedSwap',
  cpuCfsQuota: true,
  podPidsMax: 100,
} as unknown as AgentConfig;
const FACTS = { cpuCores: 4, memoryBytes: 8_000, swapBytes: 2_000 };

it.each([true, false])(
  'groups follow the configuration and the machine, with the controller memory: %s',
  (hasMemory) => {
    expect(cgroupNode(CONFIG, FACTS, hasMemory)).toEqual({
      swap: {
        cgroupVersion: 2,
        controllerPresent: hasMemory,
        swapBehavior: 'LimitedSwap',
        memoryBytes: 8_000,
        swapBytes: 2_000,
      },
      enforceCpuLimits: true,
      podPidsMax: 100,
    });
  },
);

it('a machine without such a group enforces no limits, and says so', () => {
  const { cgroups, warning } = openPodCgroups(CONFIG, FACTS, undefined, silentLog);
  expect(cgroups).toBeUndefined();
  expect(warning).toMatch(/^limits of pods are not enforced by control groups \(.+\); memory limits apply/);
});
