/** Machines of a site with a hub: real agents, each a process, and the link of the site to the cluster. */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bootstrapTokenCommand } from '../../cli/bootstrap-token.ts';
import { startLink } from '../../demo/machines/link.ts';
import { directory, kubeconfigOf, NAMESPACES, soon, story } from '../support/hub-story.ts';
import { findKubectls, type Kubectl, startKubectl } from '../support/kubectl.ts';
import { podOf } from '../support/real-agent.ts';
import { until } from '../support/until.ts';

const PROGRAM = fileURLToPath(new URL('../../agent/bin/nodekeeper-agent.ts', import.meta.url));
const PODS = `${NAMESPACES}/default/pods`;
const kubectl: Kubectl | undefined = findKubectls().at(-1);

/** An agent behind a link of its own to the cluster. */
async function startMachine(served: Awaited<ReturnType<typeof story>>, name: string) {
  const { cluster } = served;
  const folder = directory();
  const kubeconfig = join(folder, 'cluster-kubeconfig');
  writeFileSync(kubeconfig, kubeconfigOf(cluster));
  const lines: string[] = [];
  const print = (line: string) => void lines.push(line);
  await bootstrapTokenCommand(['create', '--nodes', name, '--kubeconfig', kubeconfig], {
    ...{ environment: {}, nowMs: Date.now(), print },
  });
  const link = await startLink({ host: '127.0.0.1', port: Number(new URL(cluster.url).port) });
  onTestFinished(() => link.close());
  writeFileSync(join(folder, 'ca.pem'), cluster.ca!);
  writeFileSync(join(folder, 'hub-ca.pem'), served.hub.ca!);
  const config = join(folder, 'agent.yaml');
  writeFileSync(
    config,
    `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
endpoint: https://127.0.0.1:${link.port}
clusterId: edge
certificateAuthorityFile: ${folder}/ca.pem
hubEndpoint: ${served.hub.url}
hubCertificateAuthorityFile: ${folder}/hub-ca.pem
bootstrapToken: ${lines.join('').trim()}
hostnameOverride: ${name}
rootDirectory: ${folder}/root
runtime: exec
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
healthzPort: 0
`,
  );
  const agent = spawn(process.execPath, [PROGRAM, '--config', config], {
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
  });
  let output = '';
  for (const stream of [agent.stdout, agent.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  onTestFinished(async () => {
    link.restore();
    await cluster.send('DELETE', PODS, { body: { gracePeriodSeconds: 1 } });
    await until(async () => (await cluster.send('GET', PODS)).body.items.length === 0, {
      ...{ withinMs: 30_000, what: `no pods\n${output.slice(-2_000)}` },
    }).catch(() => undefined);
    agent.kill('SIGKILL');
  });
  return { link, agent, output: () => output };
}

/** A hub with one machine. */
async function siteWithMachine() {
  const served = await story();
  const { cluster } = served;
  const hubKubeconfig = join(directory(), 'hub-kubeconfig');
  writeFileSync(hubKubeconfig, kubeconfigOf(served.hub));
  const { link, output } = await startMachine(served, 'edge-1');
  const phaseAt = async (api: typeof cluster, name: string): Promise<string | undefined> =>
    (await api.send('GET', `${PODS}/${name}`)).body.status?.phase;
  return {
    ...served,
    hubKubeconfig,
    phaseAt,
    async startPod(name: string, script: string) {
      const made = await cluster.send('POST', PODS, { body: podOf(name, 'edge-1', [['main', script]]) });
      expect(made).toMatchObject({ status: 201 });
      await soon(`pod ${name} at the hub`, async () => (await phaseAt(served.hub, name)) === 'Running', 60_000);
      await soon('that the hub knows the machine', () => output().includes('the hub of the site knows this machine'));
    },
    cut() {
      link.cut();
      served.link.cut();
    },
    restore() {
      link.restore();
      served.link.restore();
    },
    output,
  };
}

describe.skipIf(kubectl === undefined)('a hub with machines', { timeout: 240_000 }, () => {
  it('shows what became of a pod while the link is cut, and the cluster has it afterwards', async () => {
    const site = await siteWithMachine();
    const marker = join(directory(), 'end');
    await site.startPod('job', `until [ -e ${marker} ]; do sleep 0.2; done; exit 3`);
    const watching = startKubectl(kubectl!, ['get', 'pods', '-w', '--no-headers'], { kubeconfig: site.hubKubeconfig });
    site.cut();
    await soon(
      'that the hub has noticed',
      async () => (await site.hub.send('GET', PODS)).headers['warning'] !== undefined,
      40_000,
    );
    writeFileSync(marker, '');
    const fromMs = performance.now();
    await soon('the end of the pod', async () => (await site.phaseAt(site.hub, 'job')) === 'Failed', 15_000);
    process.stdout.write(`seen ${Math.round(performance.now() - fromMs)} ms after the command to end\n`);
    expect(await site.phaseAt(site.cluster, 'job')).toBe('Running');
    const listed = await startKubectl(kubectl!, ['get', 'pods', '--no-headers'], { kubeconfig: site.hubKubeconfig })
      .ended;
    expect(listed.stdout).toMatch(/^job\s+0\/1\s+Error\s/);
    await soon('the event', () => /job\s+0\/1\s+Error/.test(watching.stdout()));
    site.restore();
    await soon('the status at the cluster', async () => (await site.phaseAt(site.cluster, 'job')) === 'Failed', 60_000);
    const at = async (api: typeof site.cluster) => (await api.send('GET', `${PODS}/job`)).body;
    await soon(
      'the same object in both',
      async () => (await at(site.hub)).metadata.resourceVersion === (await at(site.cluster)).metadata.resourceVersion,
      60_000,
    );
    expect(await at(site.hub)).toEqual(await at(site.cluster));
  });

  it('passes exec, logs and log streams to the cluster, and says why not while the link is cut', async () => {
    const site = await siteWithMachine();
    await site.startPod('web', 'echo first; while true; do sleep 0.2; echo again; done');
    const run = (...args: readonly string[]) => startKubectl(kubectl!, args, { kubeconfig: site.hubKubeconfig });
    const command = ['exec', '-i', 'web', '--', 'sh', '-c', 'cat; echo err >&2; exit 3'];
    const ran = startKubectl(kubectl!, command, { kubeconfig: site.hubKubeconfig, stdin: 'in\n' });
    expect(await ran.ended).toMatchObject({
      ...{ exitCode: 3, stdout: 'in\n', stderr: 'err\ncommand terminated with exit code 3\n' },
    });
    const shown = await run('logs', 'web', '--tail=-1', '--limit-bytes=6').ended;
    expect(shown).toMatchObject({ exitCode: 0, stdout: 'first\n' });
    const following = run('logs', '-f', 'web');
    await soon('lines that are written meanwhile', () => following.stdout().split('again').length > 5, 30_000);
    expect(following.stdout()).toMatch(/^first\nagain\n/);
    following.interrupt();
    await following.ended;
    site.link.cut();
    await soon(
      'that the hub has noticed',
      async () => (await site.hub.send('GET', PODS)).headers['warning'] !== undefined,
      40_000,
    );
    const refused = await run('exec', 'web', '--', 'true').ended;
    expect(refused.exitCode).not.toBe(0);
    expect(refused.stderr).toContain('cannot be reached');
  });

  it('has pods replaced long before their time, if the switch of the site ended the power of their machine', async () => {
    const folder = directory();
    const [asked, powerOff] = [join(folder, 'asked'), join(folder, 'power-off')];
    const user = 'system:serviceaccount:kube-system:hub';
    // Without power, neither the agent nor the processes of pods run. A pod says where it runs.
    writeFileSync(powerOff, `#!/bin/sh\necho "$1" >> ${asked}\nkill -9 $(cat ${folder}/$1.pids)\n`, { mode: 0o755 });
    const roles = ['system:nodekeeper:hub', 'system:nodekeeper:site-hub'];
    const served = await story(roles, ['--site-hub', user, '--power-off', powerOff]);
    const { cluster } = served;
    const names = ['edge-1', 'edge-2'];
    const policy = { metadata: { name: 'site' }, spec: { hub: user, nodes: names, namespaces: ['default'] } };
    const policies = '/apis/nodekeeper.dev/v1alpha1/sitepolicies';
    expect(await cluster.send('POST', policies, { body: policy })).toMatchObject({ status: 201 });
    const machines = new Map<string, Awaited<ReturnType<typeof startMachine>>>();
    for (const name of names) {
      const machine = await startMachine(served, name);
      machines.set(name, machine);
      writeFileSync(join(folder, `${name}.pids`), `${machine.agent.pid}\n`);
      await soon(`that ${name} obeys the hub`, async () => {
        const { body } = await cluster.send('GET', `/api/v1/nodes/${name}`);
        return body.metadata?.annotations?.['nodekeeper.dev/site-hub'] === user;
      });
    }
    // Two of four: Kubernetes makes one of two in a command.
    const script = `echo $$$$ >> ${folder}/$NODE.pids; while true; do sleep 0.2; done`;
    const main = {
      ...{ name: 'main', image: 'none', command: ['sh', '-c', script] },
      env: [{ name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
    };
    const template = {
      metadata: { labels: { app: 'once' }, annotations: { 'nodekeeper.dev/offline-stop-after': '10m' } },
      spec: {
        containers: [main],
        terminationGracePeriodSeconds: 1,
        automountServiceAccountToken: false,
        tolerations: [{ key: 'nodekeeper.dev/runtime', operator: 'Exists' }],
      },
    };
    const set = { replicas: 1, selector: { matchLabels: { app: 'once' } }, template };
    const sets = '/apis/apps/v1/namespaces/default/replicasets';
    expect(await cluster.send('POST', sets, { body: { metadata: { name: 'once' }, spec: set } })).toMatchObject({
      status: 201,
    });
    onTestFinished(() => void cluster.send('DELETE', `${sets}/once`));
    const running = async (): Promise<{ uid: string; nodeName: string } | undefined> => {
      const { body } = await cluster.send('GET', PODS);
      const pod = body.items.find(({ status }: { status?: { phase?: string } }) => status?.phase === 'Running');
      return pod && { uid: pod.metadata.uid, nodeName: pod.spec.nodeName };
    };
    const first = await until(running, { withinMs: 60_000, what: 'the pod' });
    machines.get(first.nodeName)!.agent.kill('SIGSTOP');
    const fromMs = performance.now();
    const second = await until(
      async () => {
        const pod = await running();
        return pod !== undefined && pod.uid !== first.uid && pod;
      },
      { withinMs: 150_000, what: 'its replacement' },
    );
    process.stdout.write(`replaced ${Math.round((performance.now() - fromMs) / 1_000)} s after its machine stopped\n`);
    expect(second.nodeName).toBe(names.find((name) => name !== first.nodeName));
    expect(readFileSync(asked, 'utf8')).toBe(`${first.nodeName}\n`);
  });
});
