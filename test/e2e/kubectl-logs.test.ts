/** kubectl logs of pods of a real agent, which has no port, against local mode: every release of kubectl. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findKubectls, type Kubectl, kubectlOf, oldestAndNewest, startKubectl } from '../support/kubectl.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { podOf, type RealAgent, startRealAgent } from '../support/real-agent.ts';

const NODE = 'edge-1';
const PODS = '/api/v1/namespaces/default/pods';
const kubectls = findKubectls();
const one = kubectlOf(33);
/** An agent learns of requests by its heartbeats: four in this time. */
const LEASE_SECONDS = 4;
/** Commands at a time: a user may read five logs of a node at once. */
const AT_ONCE = 3;
const groups = Array.from({ length: Math.ceil(kubectls.length / AT_ONCE) }, (_, index) => {
  const group = kubectls.slice(AT_ONCE * index, AT_ONCE * (index + 1));
  return { group, names: group.map(({ name }) => name).join(', ') };
});

describe.skipIf(one === undefined)('kubectl logs', { timeout: 120_000 }, () => {
  let local: LocalForTest;
  let agent: RealAgent;

  beforeAll(async () => {
    local = await startLocalForTest({ nodes: 0 });
    agent = await startRealAgent(local, { nodeName: NODE, leaseSeconds: LEASE_SECONDS });
    await Promise.all([
      agent.startPod('web', [['main', 'for i in 1 2 3; do echo "line $i"; done; echo failed >&2; sleep 600']]),
      agent.startPod('pair', [
        ['a', 'echo from a; sleep 600'],
        ['b', 'echo from b; sleep 600'],
      ]),
      agent.startPod('crash', [['main', 'echo "run at $(date)"; sleep 1; exit 3']], 'Always'),
      agent.startPod('ticks', [
        ['main', 'i=0; while true; do i=$((i+1)); echo "tick $i $(date +%s%3N)"; sleep 0.5; done'],
      ]),
    ]);
    await local.client.send({ method: 'POST', path: PODS, body: podOf('unbound', undefined, [['main', 'true']]) });
  }, 120_000);

  afterAll(async () => {
    await agent?.stop();
    await local?.stop();
  }, 60_000);

  const run = (kubectl: Kubectl, ...args: string[]) =>
    startKubectl(kubectl, args, { kubeconfig: local.kubeconfig }).ended;
  const logs = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await run(one!, 'logs', ...args);
    return stdout + stderr;
  };

  it.each(groups)('$names print the log', async ({ group }) => {
    const results = await Promise.all(group.map((kubectl) => run(kubectl, 'logs', 'web')));
    for (const { stdout, stderr, exitCode } of results) {
      expect([stdout, stderr, exitCode]).toEqual(['line 1\nline 2\nline 3\nfailed\n', '', 0]);
    }
  });

  it.each(oldestAndNewest())('$name follows the log without a gap', async (kubectl) => {
    const following = startKubectl(kubectl, ['logs', '-f', '--tail=1', 'ticks'], { kubeconfig: local.kubeconfig });
    await following.untilLines(2);
    await following.untilLines(8);
    following.interrupt();
    await following.ended;
    const numbers = [...following.stdout().matchAll(/^tick (\d+) /gm)].map(([, number]) => Number(number));
    expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index));
    expect(numbers.length).toBeGreaterThanOrEqual(8);
  });

  it('prints parts of the log', async () => {
    const [tail, limited, since] = await Promise.all([
      logs('web', '--tail=2'),
      logs('web', '--limit-bytes=8'),
      logs('web', '--since=1s'),
    ]);
    expect([tail, limited, since]).toEqual(['line 3\nfailed\n', 'line 1\nl', '']);
    expect(await logs('web', '--since-time=2020-01-01T00:00:00Z', '--tail=1')).toBe('failed\n');
    expect(await logs('web', '--timestamps', '--tail=1')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z failed\n$/);
  });

  it('prints the containers of a pod, one or all, and by a selector', async () => {
    const [container, all] = await Promise.all([logs('pair', '-c', 'b'), logs('pair', '--all-containers')]);
    expect(container).toBe('from b\n');
    expect(all.split('\n').sort()).toEqual(['', 'from a', 'from b']);
    expect(await logs('pair', '--all-containers', '--prefix')).toContain('[pod/pair/a] from a\n');
    const selected = await logs('-l', 'app=logs', '--all-containers', '--tail=1', '--ignore-errors');
    for (const line of ['failed', 'from a', 'from b']) expect(selected).toContain(`${line}\n`);
  });

  it('prints the run before the current one', async () => {
    const previous = await logs('crash', '--previous');
    expect(previous).toMatch(/^run at .*\n$/);
    expect(await logs('web', '--previous')).toBe(
      'Error from server (BadRequest): previous terminated container "main" in pod "web" not found\n',
    );
  });

  it('says what is wrong in the words of Kubernetes', async () => {
    expect(await logs('absent')).toMatch(/pods "absent" not found/);
    expect(await logs('pair', '-c', 'zz')).toBe('error: container zz is not valid for pod pair\n');
    expect(await logs('unbound')).toBe('');
  });
});
