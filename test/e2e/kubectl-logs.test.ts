/** kubectl logs of pods of a real agent, which has no port, against local mode: every release of kubectl. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordsOf } from '../../shared/kubernetes/normal-form.ts';
import { findKubectls, type Kubectl, kubectlOf, startKubectl } from '../support/kubectl.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NODE = 'edge-1';
const PODS = '/api/v1/namespaces/default/pods';
const kubectls = findKubectls();
const one = kubectlOf(33);
const oldestAndNewest = [kubectls[0], kubectls.filter(({ name }) => name !== 'kubectl').at(-1)].filter(
  (each) => each !== undefined,
);
/** The beat of the agent. */
const LEASE_SECONDS = 8;

describe.skipIf(one === undefined)('kubectl logs', { timeout: 120_000 }, () => {
  let local: LocalForTest;
  let directory: string;
  let agent: ChildProcess | undefined;
  let output = '';

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-logs-'));
    local = await startLocalForTest({ nodes: 0 });
    const command = [join(ROOT, 'cli/bin/nodekeeper.ts'), 'bootstrap-token', 'create', '--nodes', 'edge-*'];
    const { stdout } = await promisify(execFile)(process.execPath, [...command, '--kubeconfig', local.kubeconfig]);
    writeFileSync(join(directory, 'token'), stdout.trim());
    writeFileSync(join(directory, 'ca.pem'), local.access.ca ?? '');
    writeFileSync(
      join(directory, 'agent.yaml'),
      `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
endpoint: "${local.access.url}"
certificateAuthorityFile: ${directory}/ca.pem
bootstrapTokenFile: ${directory}/token
runtime: exec
rootDirectory: ${directory}/root
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
nodeLeaseDurationSeconds: ${LEASE_SECONDS}
`,
    );
    const options = ['--config', join(directory, 'agent.yaml'), '--hostname-override', NODE, '--healthz-port', '0'];
    const started = spawn(process.execPath, [join(ROOT, 'agent/bin/nodekeeper-agent.ts'), ...options], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'] },
    });
    for (const stream of [started.stdout, started.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    agent = started;
    await startPod('web', [['main', 'for i in 1 2 3; do echo "line $i"; done; echo failed >&2; sleep 600']]);
    await startPod('pair', [
      ['a', 'echo from a; sleep 600'],
      ['b', 'echo from b; sleep 600'],
    ]);
    await startPod('crash', [['main', 'echo "run at $(date)"; sleep 1; exit 3']], 'Always');
    await startPod('ticks', [
      ['main', 'i=0; while true; do i=$((i+1)); echo "tick $i $(date +%s%3N)"; sleep 0.5; done'],
    ]);
    await local.client.send({ method: 'POST', path: PODS, body: podOf('unbound', undefined, [['main', 'true']]) });
  }, 120_000);

  afterAll(async () => {
    // Not 0: then the object no longer exists while its processes still run, and an agent that ends leaves them running.
    for (const name of ['web', 'pair', 'crash', 'ticks']) {
      await local?.client.send({ method: 'DELETE', path: `${PODS}/${name}`, body: { gracePeriodSeconds: 1 } });
    }
    await until(async () => (await podNames()).length <= 1, { withinMs: 20_000, everyMs: 200, what: 'no pods' });
    agent?.kill('SIGTERM');
    await local?.stop();
    rmSync(directory, { recursive: true, force: true });
  }, 60_000);

  async function podNames(): Promise<readonly string[]> {
    const answer = await local.client.send({ method: 'GET', path: PODS });
    const { items } = (answer.kind === 'answered' ? answer.body : {}) as { items: { metadata: { name: string } }[] };
    return items.map(({ metadata }) => metadata.name);
  }

  const podOf = (name: string, nodeName: string | undefined, scripts: readonly (readonly [string, string])[]) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: 'logs' } },
    spec: {
      ...(nodeName === undefined ? {} : { nodeName }),
      restartPolicy: 'Never',
      containers: scripts.map(([container, script]) => ({
        name: container,
        image: 'none',
        command: ['/bin/sh', '-c', script],
      })),
    },
  });

  async function startPod(name: string, scripts: readonly (readonly [string, string])[], restartPolicy = 'Never') {
    const body = podOf(name, NODE, scripts);
    const answer = await local.client.send({
      method: 'POST',
      path: PODS,
      body: { ...body, spec: { ...body.spec, restartPolicy } },
    });
    expect(answer).toMatchObject({ kind: 'answered', status: 201 });
    const ready = async (): Promise<boolean> => {
      const found = await local.client.send({ method: 'GET', path: `${PODS}/${name}` });
      const pod = (found.kind === 'answered' ? found.body : {}) as { status?: Record<string, unknown> };
      const statuses = recordsOf(pod.status?.['containerStatuses']);
      const restarts = restartPolicy === 'Always' ? 2 : 0;
      return (
        statuses.length === scripts.length &&
        statuses.every((each) => Number(each['restartCount']) >= restarts && each['state'] !== undefined) &&
        (restarts > 0 || statuses.every((each) => JSON.stringify(each['state']).includes('running')))
      );
    };
    await until(ready, { withinMs: 60_000, everyMs: 200, what: `pod ${name}` }).catch((error: Error) => {
      throw new Error(`${error.message}\n${output.slice(-4_000)}`);
    });
  }

  const run = (kubectl: Kubectl, ...args: string[]) =>
    startKubectl(kubectl, args, { kubeconfig: local.kubeconfig }).ended;
  const logs = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await run(one!, 'logs', ...args);
    return stdout + stderr;
  };

  it.each(kubectls)('$name prints the log', async (kubectl) => {
    const { stdout, stderr, exitCode } = await run(kubectl, 'logs', 'web');
    expect([stdout, stderr, exitCode]).toEqual(['line 1\nline 2\nline 3\nfailed\n', '', 0]);
  });

  it.each(oldestAndNewest)('$name follows the log without a gap', async (kubectl) => {
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
    expect(await logs('web', '--tail=2')).toBe('line 3\nfailed\n');
    expect(await logs('web', '--limit-bytes=8')).toBe('line 1\nl');
    expect(await logs('web', '--since=1s')).toBe('');
    expect(await logs('web', '--since-time=2020-01-01T00:00:00Z', '--tail=1')).toBe('failed\n');
    expect(await logs('web', '--timestamps', '--tail=1')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z failed\n$/);
  });

  it('prints the containers of a pod, one or all, and by a selector', async () => {
    expect(await logs('pair', '-c', 'b')).toBe('from b\n');
    expect((await logs('pair', '--all-containers')).split('\n').sort()).toEqual(['', 'from a', 'from b']);
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

  it.each(oldestAndNewest)('$name exec, attach, cp and port-forward end with one sentence', async (kubectl) => {
    const sentence = 'is not served: this API cannot upgrade a connection to WebSocket or SPDY';
    for (const args of [
      ['exec', 'web', '--', 'true'],
      ['attach', 'web'],
      ['port-forward', 'web', '18080:80'],
      ['cp', 'web:/etc/hostname', '/dev/null'],
    ]) {
      const { stdout, stderr, exitCode, timedOut } = await run(kubectl, ...args);
      expect([args[0], exitCode === 0, timedOut]).toEqual([args[0], false, false]);
      expect(stdout + stderr).toContain(sentence);
    }
  });
});
