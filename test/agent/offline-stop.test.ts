/** Pods that must not run on two machines, from the API through the agent to processes. */
import { afterEach, expect, it } from 'vitest';
import { identify, readBootId } from '../../agent/adapters/runtime-exec/process-table.ts';
import { type ExecAgent, execAgent, shell } from '../support/exec-agent.ts';
import { until } from '../support/until.ts';

/** 10 minutes are 2 s. */
const FACTOR = 300;

let agent: ExecAgent;
afterEach(() => agent.close());

it('the processes of such a pod are killed without heartbeats, whatever they do with SIGTERM', async () => {
  agent = await execAgent(FACTOR);
  // For Kubernetes, two dollars are one.
  const containers = [{ name: 'main', ...shell('trap "" TERM; echo "pid $$$$"; while :; do sleep 1; done') }];
  const pod = await agent.bind('web', { containers }, { annotations: { 'nodekeeper.dev/offline-stop-after': '10m' } });
  await agent.eventSeen('web: Normal WaitingForHeartbeat');
  expect(agent.output(pod)).toBe('');
  agent.beat();
  const [, pid] = /pid (\d+)/.exec(await agent.outputHas(pod, 'pid')) ?? [];
  agent.isOffline = true;
  const process = () => identify(Number(pid), readBootId());
  expect(process()).toBeDefined();
  await until(() => process() === undefined, { withinMs: 30_000, everyMs: 20, what: 'the process does not exist' });
  agent.isOffline = false;
  const ended = await agent.statusHas('web', 'the pod has failed', ({ status }) => status?.phase === 'Failed');
  expect(ended.status?.reason).toBe('OfflineStop');
});
