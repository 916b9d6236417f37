/** What the pod loop needs besides an API, a runtime and time: probes that succeed, and everything admitted. */
import type { PodLoopDependencies } from '../../agent/app/pods/dependencies.ts';
import { ADMITTED } from '../../agent/rules/pod-admission.ts';
import { silentLog, silentMeter } from './agent-api.ts';

export const podLoopParts = {
  nodeName: 'edge-1',
  probes: {
    update() {},
    readinessOf: (_, { state: { kind } }) => ({ started: kind === 'running', ready: kind === 'running' }),
    remove() {},
    onResult() {},
    stop() {},
  },
  inputs: { prepare: async () => {}, changed() {}, remove: async () => {}, keepOnly() {} },
  fraction: () => 0,
  log: silentLog,
  meter: silentMeter,
  operatingSystem: 'linux',
  hostIp: () => '192.0.2.7',
  recordEvent: () => {},
  gate: () => ADMITTED,
  topology: { admit: () => ADMITTED, release() {} },
} satisfies Partial<PodLoopDependencies>;
