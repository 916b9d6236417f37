/** What `nodekeeper explain pod` prints about the scheduler's decisions. */
import { describe, expect, it } from 'vitest';
import { explainCommand } from '../../cli/explain.ts';
import { ScheduledCluster } from '../support/scheduled-cluster.ts';

async function explained(on: ScheduledCluster, name: string, ...options: string[]): Promise<string> {
  const lines: string[] = [];
  const io = { environment: {}, nowMs: on.fleet.nowMs(), print: (line: string) => lines.push(line) };
  const access = ['--server', 'https://cluster.example', '--token', 'token'];
  await explainCommand(['pod', `default/${name}`, ...options, ...access], io, (_access, { method, path }) =>
    on.send(method, path),
  );
  return lines.join('\n');
}

describe('explain pod', () => {
  it('prints the scores of the best nodes, and why the others were rejected', async () => {
    const on = new ScheduledCluster();
    await on.node('n1');
    await on.node('n2');
    await on.node('n3', { taints: [{ key: 'k', effect: 'PreferNoSchedule' }] });
    await on.node('full', { allocatable: { cpu: '100m' } });
    await on.node('cordoned', { unschedulable: true });
    await on.running('r', 'n2', { requests: { cpu: '2' } });
    await on.pod('p', { requests: { cpu: '500m', memory: '1Gi' } });
    await on.settle();
    const text = await explained(on, 'p', '--verify');
    expect(text).toContain('bound to n1: 3 of 5 examined nodes are feasible; best scores: n1 ');
    expect(text).toMatch(/^ {55}attempt 1, 0s after the pod entered the queue$/m);
    expect(text).toMatch(/^ {55}n1 (\d+) = TaintToleration 3×100 \+ .*NodeResourcesFit 1×87/m);
    expect(text).toMatch(/^ {55}n3 (\d+) = TaintToleration 3×0 \+ /m);
    expect(text).toMatch(/^ {55}rejected: 1 node\(s\) were unschedulable, 1 Insufficient cpu$/m);
    expect(text).toContain('2 decisions replayed: same outcome');
  });

  it('prints why no node is feasible: nodes per reason, and how much is missing', async () => {
    const on = new ScheduledCluster();
    for (const name of ['n1', 'n2', 'n3', 'n4']) await on.node(name);
    await on.node('cordoned', { unschedulable: true });
    for (const name of ['n1', 'n2', 'n3', 'n4']) {
      await on.running(`r-${name}`, name, { requests: { cpu: name === 'n3' ? '3' : '3500m' } });
    }
    await on.pod('p', { requests: { cpu: '1500m', memory: '1Gi' } });
    await on.settle();
    const text = await explained(on, 'p', '--verify');
    expect(text).toMatch(/^ {55}Insufficient cpu: 4 nodes, for example n\d, n\d, n\d$/m);
    expect(text).toMatch(/^ {55}node\(s\) were unschedulable: 1 node: cordoned$/m);
    expect(text).toMatch(/^ {55}cpu: 1500m requested; most is free on n3: 1 of 4$/m);
    expect(text).not.toContain('memory:');
    expect(text).toContain('1 decisions replayed: same outcome');
    // Later it fits, at the second attempt.
    on.fleet.at(20);
    await on.remove('r-n2');
    await on.settle();
    expect(await explained(on, 'p')).toMatch(/^ {55}attempt 2, 20s after the pod entered the queue$/m);
  });
});
