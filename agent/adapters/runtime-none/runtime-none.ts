/** The runtime of a machine that is only monitored: pods bound to it are rejected. */
import type { PodRuntime } from '../../ports/pod-runtime.ts';

const REFUSAL = Object.freeze({
  reason: 'NoRuntime',
  message: 'this node runs no pods: its agent was started with runtime none',
});

export function noRuntime(version = '1.0.0'): PodRuntime {
  return {
    version: `none://${version}`,
    refusal: REFUSAL,
    health: async () => ({ kind: 'ready' }),
    start: async () => {
      throw new Error(REFUSAL.message);
    },
    stop: async () => {},
    remove: async () => {},
    pods: async () => [],
    onChange() {},
    close: async () => {},
  };
}
