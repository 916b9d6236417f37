/** exec, attach, cp and port-forward into pods of a real agent, which has no port, through `nodekeeper serve`. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findKubectls, type Kubectl, kubectlOf, startKubectl } from '../support/kubectl.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { type RealAgent, startRealAgent } from '../support/real-agent.ts';

const kubectls = findKubectls().filter(({ minor }) => minor >= 31);
const one = kubectlOf(33);

describe.skipIf(one === undefined)('kubectl exec', { timeout: 120_000 }, () => {
  let local: LocalForTest;
  let agent: RealAgent;

  beforeAll(async () => {
    local = await startLocalForTest({ nodes: 0 });
    agent = await startRealAgent(local, { nodeName: 'edge-1', leaseSeconds: 40 });
    await agent.startPod('web', [['main', 'sleep 6000']]);
  }, 120_000);

  afterAll(async () => {
    await agent?.stop();
    await local?.stop();
  }, 60_000);

  const run = (kubectl: Kubectl, args: readonly string[], stdin?: string) =>
    startKubectl(kubectl, args, { kubeconfig: local.kubeconfig, ...(stdin === undefined ? {} : { stdin }) }).ended;

  it.each(kubectls)('$name runs a command with its output, its errors and its exit code', async (kubectl) => {
    const result = await run(kubectl, ['exec', 'web', '--', 'sh', '-c', 'echo out; echo err >&2; exit 3']);
    expect(result).toMatchObject({
      stdout: 'out\n',
      stderr: 'err\ncommand terminated with exit code 3\n',
      exitCode: 3,
    });
  });

  it.each(kubectls)('$name sends input to its end', async (kubectl) => {
    const text = 'x'.repeat(3_000_000);
    const result = await run(kubectl, ['exec', '-i', 'web', '--', 'wc', '-c'], text);
    expect(result).toMatchObject({ stdout: `${text.length}\n`, stderr: '', exitCode: 0 });
  });
});
