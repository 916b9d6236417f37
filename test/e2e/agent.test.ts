/** The agent as a process against local mode: from a bootstrap token to a pod and a key that survive the agent. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAlive, type ProcessIdentity, readBootId } from '../../agent/adapters/runtime-exec/process-table.ts';
import { buildAgent } from '../../scripts/build-agent.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { recordsOf } from '../../shared/kubernetes/normal-form.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NODE = 'edge-1';
const soon = { withinMs: 30_000, everyMs: 200 };

describe('the agent', { timeout: 90_000 }, () => {
  let local: LocalForTest;
  let directory: string;
  let bundle: string;
  let agent: { readonly child: ChildProcess; output(): string } | undefined;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-e2e-'));
    [local, bundle] = await Promise.all([
      startLocalForTest({ nodes: 0, dataDir: join(directory, 'cluster') }),
      buildAgent(join(directory, 'dist')),
    ]);
    const command = [join(ROOT, 'cli/bin/nodekeeper.ts'), 'bootstrap-token', 'create', '--nodes', 'edge-*'];
    const { stdout } = await promisify(execFile)(process.execPath, [...command, '--kubeconfig', local.kubeconfig]);
    writeFileSync(join(directory, 'token'), stdout.trim());
    writeFileSync(join(directory, 'ca.pem'), local.access.ca ?? '');
    writeConfiguration('720h');
  }, 120_000);

  function writeConfiguration(keyRotationPeriod: string): void {
    writeFileSync(
      join(directory, 'agent.yaml'),
      `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
endpoint: "${local.access.url}"
certificateAuthorityFile: ${directory}/ca.pem
bootstrapTokenFile: ${directory}/token
runtime: exec
rootDirectory: ${directory}/root
keyRotationPeriod: ${keyRotationPeriod}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
`,
    );
  }

  afterAll(async () => {
    await stopAgent();
    for (const name of podUids.keys()) killPod(name);
    await local?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  function startAgent(program: string): void {
    const args = [
      program,
      '--config',
      join(directory, 'agent.yaml'),
      '--hostname-override',
      NODE,
      '--healthz-port',
      '0',
    ];
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    agent = { child, output: () => output };
  }

  async function stopAgent(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = agent?.child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    child.kill(signal);
    return ended;
  }

  const get = async (path: string): Promise<KubeObject | undefined> => {
    const answer = await local.client.send({ method: 'GET', path });
    return answer.kind === 'answered' && answer.status === 200 ? (answer.body as KubeObject) : undefined;
  };
  const conditionOf = (object: KubeObject | undefined, type: string) =>
    recordsOf(object?.status?.['conditions']).find((each) => each['type'] === type);
  const podUids = new Map<string, string>();

  function recordOf(name: string): ProcessIdentity | undefined {
    const path = join(directory, 'root/pods', podUids.get(name) ?? '-', 'record.json');
    if (!existsSync(path)) return undefined;
    return (JSON.parse(readFileSync(path, 'utf8')) as { containers: { process: ProcessIdentity }[] }).containers[0]
      ?.process;
  }

  function isRunning(name: string): boolean {
    const record = recordOf(name);
    return record !== undefined && isAlive(record, readBootId());
  }

  function killPod(name: string): void {
    if (isRunning(name)) process.kill(-recordOf(name)!.pid, 'SIGKILL');
  }

  async function post(resource: string, body: object): Promise<string> {
    const path = `/api/v1/namespaces/default/${resource}`;
    const answer = await local.client.send({ method: 'POST', path, body });
    expect(answer).toMatchObject({ kind: 'answered', status: 201 });
    return (answer as unknown as { readonly body: KubeObject }).body.metadata.uid ?? '';
  }

  /** Of one container, on the node. */
  async function runPod(name: string, container: object, more: object = {}): Promise<KubeObject> {
    const containers = [{ name: 'main', image: 'none', ...container }];
    podUids.set(name, await post('pods', { metadata: { name }, spec: { nodeName: NODE, containers, ...more } }));
    return eventually('a ready pod', async () => {
      const found = await get(`/api/v1/namespaces/default/pods/${name}`);
      return conditionOf(found, 'Ready')?.['status'] === 'True' ? found : undefined;
    });
  }

  /** Fails with the output of the agent. */
  async function eventually<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
    return until(look, { ...soon, what }).catch((error: Error) => {
      throw new Error(`${error.message}\n${agent?.output().slice(-4_000)}`);
    });
  }

  it('enrols, registers, and its node becomes ready', async () => {
    startAgent(join(ROOT, 'agent/bin/nodekeeper-agent.ts'));
    const node = await eventually('a ready node', async () => {
      const found = await get(`/api/v1/nodes/${NODE}`);
      return conditionOf(found, 'Ready')?.['status'] === 'True' ? found : undefined;
    });
    expect(node.status?.['nodeInfo']).toMatchObject({
      containerRuntimeVersion: 'exec://1.0.0',
      operatingSystem: 'linux',
    });
    expect(node.status?.['allocatable']).toMatchObject({ pods: '110' });
    expect(node.metadata.labels).toMatchObject({ 'nodekeeper.dev/runtime': 'exec' });
    await eventually('a lease', () => get(`/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${NODE}`));
  });

  it('attracts no pod that needs an image, and its reason is in the events', async () => {
    const path = '/api/v1/namespaces/default/pods';
    const body = { metadata: { name: 'imaged' }, spec: { containers: [{ name: 'main', image: 'nginx' }] } };
    await local.client.send({ method: 'POST', path, body });
    await eventually('the reason', async () => {
      const events = (await get('/api/v1/namespaces/default/events')) as unknown as { items: { message: string }[] };
      return events.items.some(({ message }) =>
        message.includes('1 node(s) run processes, not images (untolerated taint nodekeeper.dev/runtime)'),
      );
    });
    await local.client.send({ method: 'DELETE', path: `${path}/imaged` });
  });

  it('runs a pod that is bound to it', async () => {
    const script = 'trap "exit 0" TERM; while true; do sleep 0.1; done';
    const pod = await runPod('web', { command: ['/bin/sh', '-c', script] });
    expect(pod.status).toMatchObject({ phase: 'Running', hostIP: expect.any(String) });
  });

  it('changes the limits of a running container in place', async () => {
    const resources = { requests: { cpu: '10m', memory: '16Mi' }, limits: { cpu: '200m', memory: '256Mi' } };
    await runPod('resized', { command: ['/bin/sh', '-c', 'exec sleep 6000'], resources });
    const before = recordOf('resized');
    const path = '/api/v1/namespaces/default/pods/resized';
    const body = { spec: { containers: [{ name: 'main', resources: { limits: { cpu: '400m' } } }] } };
    const contentType = 'application/strategic-merge-patch+json';
    const patch = { method: 'PATCH', path: `${path}/resize`, contentType, body } as const;
    expect(await local.client.send(patch)).toMatchObject({ status: 200 });
    const status = await eventually('the limits', async () => {
      const [found] = recordsOf((await get(path))?.status?.['containerStatuses']);
      return (found?.['resources'] as typeof resources | undefined)?.limits.cpu === '400m' ? found : undefined;
    });
    expect(status).toMatchObject({ restartCount: 0, resources: { requests: resources.requests } });
    expect(recordOf('resized')).toEqual(before);
    await local.client.send({ method: 'DELETE', path, body: { gracePeriodSeconds: 0 } });
  });

  it('stops on a signal, leaves the pod running, and as a bundle finds it again', async () => {
    const before = recordOf('web');
    expect(await stopAgent()).toBe(0);
    expect(before !== undefined && isAlive(before, readBootId())).toBe(true);
    startAgent(bundle);
    const uid = podUids.get('web');
    await eventually('the status of the pod by the new agent', async () => agent?.output().includes('registered'));
    expect(recordOf('web')).toEqual(before);
    expect((await get('/api/v1/namespaces/default/pods/web'))?.metadata.uid).toBe(uid);
  });

  it('after a power cut starts its pods without the API, and none again when the API returns', async () => {
    const starts = join(directory, 'starts');
    await post('configmaps', { metadata: { name: 'settings' }, data: { text: 'settings' } });
    await post('secrets', { metadata: { name: 'key' }, stringData: { key: 'secret' } });
    const token = '/var/run/secrets/kubernetes.io/serviceaccount/token';
    const script = `echo "$KEY $(cat /settings/text) $(test -s ${token} && echo token)" >> ${starts}; exec sleep 6000`;
    const env = [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'key', key: 'key' } } }];
    const volumeMounts = [{ name: 'settings', mountPath: '/settings' }];
    await runPod(
      'site',
      { command: ['/bin/sh', '-c', script], env, volumeMounts },
      { volumes: [{ name: 'settings', configMap: { name: 'settings' } }] },
    );
    const remembered = join(directory, 'root/remembered/pods.json');
    expect(readFileSync(remembered, 'utf8')).toContain('"site"');
    // No Secret is on the disk in clear.
    expect(readFileSync(remembered, 'utf8')).not.toContain(Buffer.from('secret').toString('base64'));
    const lines = () => (existsSync(starts) ? readFileSync(starts, 'utf8').trim().split('\n') : []);
    // Its shell may be slower than its status.
    await eventually('a first start', async () => lines().length === 1);
    expect(lines()).toEqual(['secret settings token']);

    const { dataDir, access } = local;
    await local.kill();
    await stopAgent('SIGKILL');
    for (const name of ['web', 'site']) killPod(name);
    rmSync(join(directory, 'root/volumes'), { recursive: true });

    startAgent(bundle);
    await eventually('a second start', async () => lines().length === 2);
    expect(lines()).toEqual(['secret settings token', 'secret settings token']);
    await eventually('processes', async () => ['web', 'site'].every((name) => isRunning(name)));
    const before = ['web', 'site'].map(recordOf);

    local = await startLocalForTest({ nodes: 0, dataDir, port: Number(new URL(access.url).port) });
    await eventually('a registration', async () => agent?.output().includes('registered'));
    await eventually('a report', async () => {
      const found = await get('/api/v1/namespaces/default/pods/site');
      return recordsOf(found?.status?.['containerStatuses'])[0]?.['restartCount'] === 1;
    });
    expect(['web', 'site'].map(recordOf)).toEqual(before);
    expect(lines()).toHaveLength(2);
  });

  it('terminates the pod when it is deleted', async () => {
    const process = recordOf('web');
    await local.client.send({
      method: 'DELETE',
      path: '/api/v1/namespaces/default/pods/web',
      body: { gracePeriodSeconds: 5 },
    });
    await eventually('no pod', async () => (await get('/api/v1/namespaces/default/pods/web')) === undefined);
    expect(process !== undefined && !isAlive(process, readBootId())).toBe(true);
    // Events that failed while the API was away are tried again after ten seconds, and new ones then.
    await eventually('its events', async () => {
      const events = (await get('/api/v1/namespaces/default/events')) as unknown as { items: { reason: string }[] };
      return ['Started', 'Killing'].every((wanted) => events.items.some(({ reason }) => reason === wanted));
    });
  });

  it('replaces its key while it sends heartbeats, and signs with the new one after a kill', async () => {
    const lease = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${NODE}`;
    const versionOf = async () => Number((await get(lease))?.metadata.resourceVersion);
    const keyIds = async () =>
      recordsOf((await get(`/apis/nodekeeper.dev/v1alpha1/nodeidentities/${NODE}`))?.spec?.['keys']).map(
        ({ keyId }) => keyId,
      );
    const [old] = await keyIds();
    expect(old).toBeDefined();
    await stopAgent();
    writeConfiguration('10s');
    startAgent(bundle);
    // A heartbeat proves a key. Heartbeats have the same interval as this period, so the next one may be there already.
    await eventually('other keys without the old one', async () => {
      const ids = await keyIds();
      return ids.length > 0 && !ids.includes(old);
    });
    await stopAgent('SIGKILL');
    writeConfiguration('0s');
    const before = await versionOf();
    startAgent(bundle);
    await eventually('a beat by the next agent', async () => (await versionOf()) > before);
    expect(await keyIds()).not.toContain(old);
    expect(agent?.output()).not.toContain('refused');
  });

  describe('by the line of nodekeeper join-command', () => {
    let line: string;

    beforeAll(async () => {
      const { stdout } = await cli('join-command', '--node-name', 'my-1', '--nodes', 'my-*');
      line = stdout.trim();
    });

    const cli = (...args: readonly string[]) =>
      promisify(execFile)(
        process.execPath,
        [join(ROOT, 'cli/bin/nodekeeper.ts'), ...args, '--kubeconfig', local.kubeconfig],
        { cwd: directory },
      );

    /** The line as it is typed, in the directory of the project. `stop` ends it with Ctrl-C. */
    function typed(text: string) {
      const child = spawn('sh', ['-c', text], { cwd: ROOT, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (part: string) => {
          output += part;
        });
      }
      const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
      return { output: () => output, ended, stop: () => process.kill(-child.pid!, 'SIGINT') };
    }

    it('joins, without a warning about its Node', async () => {
      const joined = typed(line);
      try {
        await eventually('my-1 Ready', async () => {
          const found = await get('/api/v1/nodes/my-1');
          return conditionOf(found, 'Ready')?.['status'] === 'True';
        });
      } finally {
        joined.stop();
        await joined.ended;
      }
      expect(joined.output()).not.toMatch(/does not exist|no longer exists|EBADENGINE/);
    });

    it.each([
      [
        'was used',
        (text: string) => text.replaceAll('my-1', 'my-2'),
        /^nodekeeper-agent: my-2 could not be enrolled: 403 .* has no uses left\. `nodekeeper join-command` prints a new line$/m,
      ],
      [
        'has the hash of another authority',
        (text: string) => text.replaceAll('my-1', 'my-3').replace(/sha256:\w+/, `sha256:${'0'.repeat(64)}`),
        /^nodekeeper-agent: https:\S+ presents no authority with sha256:0+: the join line belongs to another cluster, .* Nothing was sent\./m,
      ],
      [
        'has the address of no cluster',
        (text: string) => text.replaceAll('my-1', 'my-4').replace(/(https:\/\/[^:]+):\d+/, '$1:1'),
        /^nodekeeper-agent: https:\S+ does not answer: connect ECONNREFUSED \S+ Check the address of the join line$/m,
      ],
    ])('that %s ends with one sentence', async (_, changed, sentence) => {
      const refused = typed(changed(line));
      expect(await refused.ended).toBe(1);
      expect(refused.output()).toMatch(sentence);
      expect(refused.output()).not.toContain('"level":"error"');
    });

    it('that has run out ends with one sentence', async () => {
      const secretSha256 = createHash('sha256').update('secret').digest('hex');
      const expires = new Date(Date.now() + 1_500).toISOString();
      const body = { metadata: { name: 'expiring2' }, spec: { secretSha256, expires, uses: 1 } };
      const created = await local.client.send({
        method: 'POST',
        path: '/apis/nodekeeper.dev/v1alpha1/bootstraptokens',
        body,
      });
      expect(created).toMatchObject({ status: 201 });
      await until(() => Date.now() > Date.parse(expires) + 1_000, { ...soon, what: 'the end of the token' });
      const late = typed(
        line.replace(/--bootstrap-token \S+/, '--bootstrap-token expiring2.secret').replaceAll('my-1', 'my-5'),
      );
      expect(await late.ended).toBe(1);
      expect(late.output()).toMatch(/^nodekeeper-agent: my-5 could not be enrolled: .*expired.* prints a new line$/m);
    });

    it('is refused for another machine while only this one can reach the cluster', async () => {
      await expect(cli('join-command', '--install')).rejects.toThrow(
        /which other machines cannot reach\nstart it with/,
      );
      const { stdout, stderr } = await cli(
        'join-command',
        '--install',
        '--endpoint',
        'https://192.0.2.7:6443',
        '--uses',
        '50',
      );
      expect(stdout).toMatch(
        /^dist\/install\.sh --endpoint https:\/\/192\.0\.2\.7:6443 --ca-hash sha256:[0-9a-f]{64} --bootstrap-token \w+\.\S+\n$/,
      );
      expect(stderr).toContain('# valid 50 times, for 1 h');
      const created = await cli('bootstrap-token', 'create');
      expect(created.stderr).toMatch(/^To join another machine, .*: dist\/install\.sh --endpoint .* TOKEN$/m);
      expect(created.stderr).not.toContain(created.stdout.trim());
    });
  });
});
