/** `nodekeeper serve --upstream`: a hub and its cluster over real connections, with a link between them that is cut. */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CoreV1Api, KubeConfig, makeInformer } from '@kubernetes/client-node';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CommandError } from '../../cli/command.ts';
import type { CheckResult } from '../../cli/doctor/check.ts';
import { doctorCommand } from '../../cli/doctor.ts';
import { startHub } from '../../server/hub/serve-hub.ts';
import { parseServeOptions } from '../../server/options.ts';
import { makeClientCertificate } from '../support/client-certificate.ts';
import {
  ADA,
  Api,
  BOB,
  CLUSTER_ID,
  clusterOfHub,
  directory,
  hubToken,
  kubeconfigOf,
  NAMESPACES,
  quiet,
  RBAC,
  soon,
  started,
  story,
} from '../support/hub-story.ts';
import { findKubectls, type Kubectl, makePlace, runKubectl, startKubectl } from '../support/kubectl.ts';
import { nodeKeyPair, nodeToken } from '../support/node-key-pair.ts';
import { startForTest } from '../support/started-process.ts';
import { until } from '../support/until.ts';

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const CONFIG_MAPS = `${NAMESPACES}/default/configmaps`;
const HUB_WITH_SECRETS = ['system:nodekeeper:hub', 'system:nodekeeper:hub-secrets'];
const PYTHON_FOLLOWER = join(ROOT, 'test/fixtures/python/follow.py');

/** What kube-state-metrics follows by default, of what is served. Older releases: Endpoints, newer ones: the slices. */
const OF_KUBE_STATE_METRICS: readonly string[] = Object.entries({
  '/api/v1':
    'configmaps endpoints limitranges namespaces nodes persistentvolumeclaims persistentvolumes pods ' +
    'replicationcontrollers resourcequotas secrets services',
  '/apis/admissionregistration.k8s.io/v1':
    'mutatingwebhookconfigurations validatingadmissionpolicies validatingadmissionpolicybindings ' +
    'validatingwebhookconfigurations',
  '/apis/apiextensions.k8s.io/v1': 'customresourcedefinitions',
  '/apis/apps/v1': 'daemonsets deployments replicasets statefulsets',
  '/apis/autoscaling/v2': 'horizontalpodautoscalers',
  '/apis/batch/v1': 'cronjobs jobs',
  '/apis/certificates.k8s.io/v1': 'certificatesigningrequests',
  '/apis/coordination.k8s.io/v1': 'leases',
  '/apis/discovery.k8s.io/v1': 'endpointslices',
  '/apis/networking.k8s.io/v1': 'ingresses networkpolicies',
  '/apis/policy/v1': 'poddisruptionbudgets',
  '/apis/storage.k8s.io/v1': 'storageclasses volumeattachments',
}).flatMap(([group, resources]) => resources.split(' ').map((resource) => `${group}/${resource}`));

/** Lists and watches as kube-state-metrics does: all of a resource, from the version of the list. */
async function reflect(hub: Api, path: string) {
  const list = await hub.send('GET', `${path}?limit=500&resourceVersion=0`);
  expect({ path, status: list.status }).toEqual({ path, status: 200 });
  const from = list.body.metadata.resourceVersion as string;
  const query = `allowWatchBookmarks=true&resourceVersion=${from}&timeoutSeconds=480&watch=true`;
  return { path, ...(await hub.watch(`${path}?${query}`)) };
}

/** The events of complete lines of a watch. */
const eventsOf = (lines: string): string[] =>
  lines
    .slice(0, lines.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line))
    .map(({ type, object }) => `${type} ${object.metadata.name}`);

/** What an informer of the JavaScript client on ConfigMaps says. */
async function informed(hub: Api): Promise<() => readonly string[]> {
  const config = new KubeConfig();
  config.loadFromString(kubeconfigOf(hub));
  const core = config.makeApiClient(CoreV1Api);
  const informer = makeInformer(config, CONFIG_MAPS, () => core.listNamespacedConfigMap({ namespace: 'default' }));
  const events: string[] = [];
  informer.on('add', ({ metadata }) => events.push(`ADDED ${metadata?.name}`));
  informer.on('delete', ({ metadata }) => events.push(`DELETED ${metadata?.name}`));
  informer.on('error', (cause) => events.push(String(cause)));
  await informer.start();
  onTestFinished(() => informer.stop());
  return () => events;
}

/** What a watch of the Python client on ConfigMaps says. */
function follow(hub: Api, folder: string): () => readonly string[] {
  const kubeconfig = join(folder, 'python-kubeconfig');
  writeFileSync(kubeconfig, kubeconfigOf(hub));
  const child = startForTest('/usr/bin/python3', [PYTHON_FOLLOWER], { KUBECONFIG: kubeconfig });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  return () => output.split('\n');
}

/** From 1.27, as docs/kubectl.md says. */
function oldestMiddleAndNewest(): readonly Kubectl[] {
  const supported = findKubectls().filter(({ minor, name }) => minor >= 27 && name !== 'kubectl');
  const at = (share: number) => supported[Math.round((supported.length - 1) * share)];
  return [...new Set([at(0), at(0.5), at(1)])].filter((each) => each !== undefined);
}

/** A hub as its operator starts it. */
async function hubProcess(args: readonly string[]) {
  const child = spawn(process.execPath, [join(ROOT, 'cli/bin/nodekeeper.ts'), 'serve', ...args], { cwd: ROOT });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  onTestFinished(kill);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const url = await until(() => /serves (https:\/\/[^,]+), a hub of/.exec(output)?.[1], {
    withinMs: 30_000,
    what: `the address of the hub\n${output}`,
  });
  return { api: new Api(url, readFileSync(join(args[1]!, 'ca.pem'), 'utf8')), kill };
}

/** What `nodekeeper doctor` says about hubs, asked at this server. */
async function doctorAt({ url, ca }: Api): Promise<Readonly<Record<string, Partial<CheckResult>>>> {
  const caFile = join(directory(), 'ca.pem');
  writeFileSync(caFile, ca ?? '');
  const lines: string[] = [];
  const io = { environment: {}, nowMs: Date.now(), print: (line: string) => lines.push(line) };
  await doctorCommand(['--server', url, '--token', ADA, '--certificate-authority', caFile, '-o', 'json'], io).catch(
    (error: unknown) => expect(error).toBeInstanceOf(CommandError),
  );
  const { checks } = JSON.parse(lines.join('\n')) as { checks: CheckResult[] };
  return Object.fromEntries(checks.map((each) => [each.check, each]));
}

const configMap = (name: string) => ({ body: { metadata: { name } } });
describe('a hub', { timeout: 120_000 }, () => {
  it('answers reads as the cluster does, and a client reads its own writes', async () => {
    const { cluster: api, hub } = await story();
    for (let index = 0; index < 5; index += 1) {
      const name = `c${index}`;
      expect((await hub.send('POST', CONFIG_MAPS, configMap(name))).status).toBe(201);
      expect((await hub.send('GET', `${CONFIG_MAPS}/${name}`)).status).toBe(200);
    }
    expect((await hub.send('DELETE', `${CONFIG_MAPS}/c0`)).status).toBe(200);
    expect((await hub.send('GET', `${CONFIG_MAPS}/c0`)).status).toBe(404);
    const [own, theirs] = [await hub.send('GET', CONFIG_MAPS), await api.send('GET', CONFIG_MAPS)];
    expect(own.body.items).toEqual(theirs.body.items);
    expect(own.headers['warning']).toBeUndefined();
    expect((await hub.send('GET', '/readyz')).body).toBe('ok');
    // Not in the copy: passed.
    expect((await hub.send('GET', `${NAMESPACES}/default/secrets`)).status).toBe(200);
    expect((await hub.send('GET', '/metrics')).body).toContain('nodekeeper_store_writes');
    const metrics = (await hub.send('GET', '/hub/metrics')).body as string;
    expect(metrics).toContain('nodekeeper_hub_link_up 1');
    expect(metrics).toMatch(/nodekeeper_hub_passed_requests_total\{code="201"\} 5/);
    const { hub: found, hubs } = await doctorAt(hub);
    expect(found).toMatchObject({
      outcome: 'ok',
      measured: expect.stringMatching(
        /^follows the cluster, holds \d+ of \d+ resources; passed are reads of .*secrets/,
      ),
    });
    expect(hubs).toMatchObject({ outcome: 'ok', measured: expect.stringContaining(' of the whole cluster') });
    expect((await doctorAt(api))['hub']?.measured).toBe('the server is the cluster itself, no hub');
    expect((await hub.send('GET', CONFIG_MAPS, { token: 'unknown' })).status).toBe(401);
    expect((await hub.send('GET', '/hub/metrics', { token: BOB })).status).toBe(403);
    expect((await hub.send('POST', CONFIG_MAPS, { ...configMap('x'), token: BOB })).status).toBe(403);
  });

  it('reads on while the link is cut, says how old its copy is, and its watches continue afterwards', async () => {
    const { cluster: api, hub, link } = await story();
    await hub.send('POST', CONFIG_MAPS, configMap('before'));
    const watch = await hub.watch(`${CONFIG_MAPS}?watch=1`);
    await soon('the first event', () => watch.names.includes('before'));
    link.cut();
    await soon(
      'a copy that is old',
      async () => (await hub.send('GET', CONFIG_MAPS)).headers['warning'] !== undefined,
      40_000,
    );
    const read = await hub.send('GET', `${CONFIG_MAPS}/before`);
    expect(read).toMatchObject({ status: 200 });
    expect(read.headers['warning']).toMatch(
      /^199 nodekeeper "this copy is from \d{4}-\d\d-\d\dT[\d:]{8}Z, \d+ s ago: .+"$/,
    );
    expect((await doctorAt(hub))['hub']).toMatchObject({
      outcome: 'fail',
      measured: expect.stringMatching(/^has not followed the cluster for \d+s \(this copy is from .*\); reads are of/),
    });
    const write = await hub.send('POST', CONFIG_MAPS, configMap('meanwhile'));
    expect(write).toMatchObject({
      status: 503,
      body: { kind: 'Status', message: expect.stringContaining('cannot be reached') },
    });
    expect(write.headers['retry-after']).toBe('1');
    expect((await hub.send('GET', `${NAMESPACES}/default/secrets`)).status).toBe(503);
    expect((await hub.send('GET', CONFIG_MAPS, { token: 'never-seen' })).status).toBe(503);
    await api.send('POST', CONFIG_MAPS, configMap('during'));
    expect(watch.isOpen()).toBe(true);
    link.restore();
    await soon('what happened meanwhile', () => watch.names.includes('during'), 60_000);
    await soon('a copy that is new', async () => (await hub.send('GET', CONFIG_MAPS)).headers['warning'] === undefined);
    expect(await hub.send('POST', CONFIG_MAPS, configMap('after'))).toMatchObject({ status: 201 });
    await soon('a later change', () => watch.names.includes('after'));
    expect(watch.isOpen()).toBe(true);
  });

  it.each(oldestMiddleAndNewest())('$name at the hub gets, applies, waits and watches', async (kubectl) => {
    const { hub, clusterData } = await story();
    const place = makePlace();
    onTestFinished(() => place.remove());
    const kubeconfig = join(clusterData, 'hub-kubeconfig');
    writeFileSync(kubeconfig, kubeconfigOf(hub));
    const run = async (...args: readonly string[]): Promise<string> => {
      const { exitCode, stdout, stderr } = await runKubectl(kubectl, args, { kubeconfig, place });
      expect({ args, exitCode, stderr }).toEqual({ args, exitCode: 0, stderr: '' });
      return stdout;
    };
    const watching = startKubectl(kubectl, ['get', 'configmaps', '-w', '--no-headers'], { kubeconfig });
    onTestFinished(async () => {
      watching.interrupt();
      await watching.ended;
    });
    await watching.untilLines(1);
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } };
    await hub.send('POST', '/api/v1/nodes', { body: node });
    await run('create', 'configmap', 'first', '--from-literal=a=1');
    expect(await run('get', 'configmap', 'first', '-o', 'jsonpath={.data.a}')).toBe('1');
    expect(await run('get', 'nodes')).toMatch(/NAME +STATUS +ROLES +AGE +VERSION\nn1 +/);
    expect(await run('get', 'configmaps', '-A')).toContain('first');
    await run('label', 'node', 'n1', 'site=a');
    expect(await run('get', 'nodes', '-l', 'site=a', '-o', 'name')).toBe('node/n1\n');
    expect(await run('wait', '--for=jsonpath={.metadata.labels.site}=a', 'node/n1')).toContain('condition met');
    expect(await run('auth', 'can-i', 'get', 'pods')).toBe('yes\n');
    expect(await run('explain', 'pod.spec.containers')).toContain('FIELDS');
    await run('delete', 'configmap', 'first');
    await soon('both events', () => (watching.stdout().match(/^first /gm) ?? []).length >= 2);
  });

  it('informs three kinds of clients of what was created, and of what was deleted while the link was cut', async () => {
    const { cluster: api, hub, link, clusterData } = await story(HUB_WITH_SECRETS);
    await api.send('POST', CONFIG_MAPS, configMap('removed'));
    await soon('the first object', async () => (await hub.send('GET', `${CONFIG_MAPS}/removed`)).status === 200);
    const watches = await Promise.all(OF_KUBE_STATE_METRICS.map((path) => reflect(hub, path)));
    const events = {
      javascript: await informed(hub),
      python: follow(hub, clusterData),
      kubeStateMetrics: () => eventsOf(watches[OF_KUBE_STATE_METRICS.indexOf('/api/v1/configmaps')]!.text()),
    };
    const seenByAll = (event: string, withinMs: number) =>
      soon(
        `${event} at each client`,
        () => Object.values(events).every((ofClient) => ofClient().includes(event)),
        withinMs,
      ).catch((cause: unknown) => {
        const seen = Object.entries(events).map(([client, ofClient]) => `${client}: ${ofClient().join(', ')}`);
        throw new Error(seen.join('\n'), { cause });
      });
    await soon('the first event in Python', () => events.python().includes('ADDED removed'));
    await api.send('POST', CONFIG_MAPS, configMap('made'));
    await seenByAll('ADDED made', 20_000);
    link.cut();
    expect(await api.send('DELETE', `${CONFIG_MAPS}/removed`)).toMatchObject({ status: 200 });
    expect(await hub.send('GET', `${CONFIG_MAPS}/removed`)).toMatchObject({ status: 200 });
    link.restore();
    await seenByAll('DELETED removed', 60_000);
    // Leases and definitions are not in the copy: their watches are passed, and end with their connections.
    const ended = () => watches.filter(({ isOpen }) => !isOpen()).map(({ path }) => path);
    await soon('the end of the watches that were passed', () => ended().length > 1);
    expect(ended().toSorted()).toEqual([
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      '/apis/coordination.k8s.io/v1/leases',
    ]);
    for (const ofClient of Object.values(events)) {
      expect(ofClient().filter((event) => /^(ADDED made|DELETED .*)$/.test(event))).toEqual([
        'ADDED made',
        'DELETED removed',
      ]);
    }
  });

  it('refuses who lost access, and ends the watches of that user within seconds', async () => {
    const { cluster: api, hub } = await story();
    const binding = {
      metadata: { name: 'bob' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'User', name: 'bob', apiGroup: 'rbac.authorization.k8s.io' }],
    };
    await hub.send('POST', `${RBAC}/namespaces/default/rolebindings`, { body: binding });
    const account = await api.send('POST', `${NAMESPACES}/default/serviceaccounts`, {
      body: { metadata: { name: 'app' } },
    });
    expect(account.status).toBe(201);
    const path = `${NAMESPACES}/default/serviceaccounts/app/token`;
    const app = (await api.send('POST', path, { body: { spec: {} } })).body.status.token as string;
    const appBinding = { ...binding, metadata: { name: 'app' }, subjects: [{ kind: 'ServiceAccount', name: 'app' }] };
    await hub.send('POST', `${RBAC}/namespaces/default/rolebindings`, { body: appBinding });
    expect((await hub.send('GET', CONFIG_MAPS, { token: app })).status).toBe(200);
    expect((await hub.send('GET', CONFIG_MAPS, { token: BOB })).status).toBe(200);
    await hub.send('POST', CONFIG_MAPS, configMap('seen'));
    const ofApp = await hub.watch(`${CONFIG_MAPS}?watch=1`, { token: app });
    const ofBob = await hub.watch(`${CONFIG_MAPS}?watch=1`, { token: BOB });
    await soon('the first events', () => [ofApp, ofBob].every(({ names }) => names.includes('seen')));
    // At the cluster, not through the hub.
    await api.send('DELETE', `${RBAC}/namespaces/default/rolebindings/bob`);
    await api.send('DELETE', `${NAMESPACES}/default/serviceaccounts/app`);
    await soon('the end of the watch of bob', () => !ofBob.isOpen(), 10_000);
    expect(ofBob.text()).toContain('"code":403');
    await soon(
      'the refusal of bob',
      async () => (await hub.send('GET', CONFIG_MAPS, { token: BOB })).status === 403,
      5_000,
    );
    await soon('the end of the watch of app', () => !ofApp.isOpen(), 30_000);
    expect(ofApp.text()).toContain('"code":401');
    await soon(
      'the refusal of app',
      async () => (await hub.send('GET', CONFIG_MAPS, { token: app })).status === 401,
      40_000,
    );
  });

  it('holds Secrets only with the role for them', async () => {
    const { hub, cluster: api, link } = await story(HUB_WITH_SECRETS);
    await api.send('POST', `${NAMESPACES}/default/secrets`, { body: { metadata: { name: 's' } } });
    const secret = `${NAMESPACES}/default/secrets/s`;
    await soon('the secret', async () => (await hub.send('GET', secret)).status === 200);
    link.cut();
    await soon(
      'a copy that is old',
      async () => (await hub.send('GET', secret)).headers['warning'] !== undefined,
      40_000,
    );
    expect((await hub.send('GET', secret)).status).toBe(200);
  });

  it('serves users that it knew from its file when it starts without the cluster, and follows the cluster later', async () => {
    const { hub, hubArguments, stopHub, stopCluster, startCluster } = await story();
    await hub.send('POST', CONFIG_MAPS, configMap('kept'));
    expect((await hub.send('GET', `${CONFIG_MAPS}/kept`)).status).toBe(200);
    await stopHub();
    await stopCluster();
    const lines: string[] = [];
    const again = await started(hubArguments, lines);
    expect(lines.join('\n')).toContain('the cluster cannot be reached: reads are answered from the copy');
    const read = await again.api.send('GET', `${CONFIG_MAPS}/kept`);
    expect(read).toMatchObject({ status: 200 });
    expect(read.headers['warning']).toContain('this copy is from');
    expect((await again.api.send('GET', CONFIG_MAPS, { token: BOB })).status).toBe(503);
    expect((await again.api.send('DELETE', `${CONFIG_MAPS}/kept`)).status).toBe(503);
    await startCluster();
    await soon(
      'the cluster',
      async () => (await again.api.send('GET', CONFIG_MAPS)).headers['warning'] === undefined,
      40_000,
    );
    expect(await again.api.send('DELETE', `${CONFIG_MAPS}/kept`)).toMatchObject({ status: 200 });
    expect((await again.api.send('GET', `${CONFIG_MAPS}/kept`)).status).toBe(404);
  });

  it('killed and without the cluster, verifies new tokens of machines, and tokens of accounts', async () => {
    const { hubArguments, cluster: api, stopCluster } = await clusterOfHub(['system:nodekeeper:hub']);
    const pair = nodeKeyPair();
    const identity = { metadata: { name: 'n1' }, spec: { publicKey: pair.publicKey } };
    const made = await api.send('POST', '/apis/nodekeeper.dev/v1alpha1/nodeidentities', { body: identity });
    expect(made).toMatchObject({ status: 201 });
    await api.send('POST', '/api/v1/nodes', { body: { metadata: { name: 'n1' } } });
    const path = `${NAMESPACES}/default/serviceaccounts`;
    await api.send('POST', path, { body: { metadata: { name: 'app' } } });
    const app = (await api.send('POST', `${path}/app/token`, { body: { spec: {} } })).body.status.token as string;
    const machine = (ageMs: number): string =>
      nodeToken(pair, { nodeName: 'n1', nowMs: Date.now() - ageMs, clusterId: CLUSTER_ID });
    const program = await hubProcess(hubArguments);
    const ownNode = (hub: Api, ageMs: number) => hub.send('GET', '/api/v1/nodes/n1', { token: machine(ageMs) });
    // Before that everything is passed.
    await soon('the copy', async () => (await program.api.send('GET', '/readyz')).status === 200);
    await soon('the node', async () => (await ownNode(program.api, 1_000)).status === 200);
    // No right, but known: 403.
    expect((await program.api.send('GET', CONFIG_MAPS, { token: app })).status).toBe(403);
    await program.kill();
    await stopCluster();
    const { api: hub } = await started(hubArguments);
    expect(await ownNode(hub, 0)).toMatchObject({ status: 200, body: { metadata: { name: 'n1' } } });
    expect((await hub.send('GET', '/api/v1/nodes/n2', { token: machine(0) })).status).toBe(403);
    expect((await hub.send('GET', CONFIG_MAPS, { token: app })).status).toBe(403);
    expect((await hub.send('GET', CONFIG_MAPS, { token: `${app.slice(0, -4)}AAAA` })).status).toBe(401);
    const stranger = nodeToken(nodeKeyPair(), { nodeName: 'n1', nowMs: Date.now(), clusterId: CLUSTER_ID });
    expect((await hub.send('GET', '/api/v1/nodes/n1', { token: stranger })).status).toBe(401);
  });

  it('signs in with a certificate that it never presents for clients, and refuses a machine that was deleted', async () => {
    const { cluster: api, clusterData, data, upstream, authority } = await clusterOfHub([]);
    const [privateKeyPem, certificatePem] = ['ca.key', 'ca.pem'].map((name) =>
      readFileSync(join(clusterData, name), 'utf8'),
    );
    const signer = { commonName: '', privateKeyPem: privateKeyPem!, certificatePem: certificatePem! };
    const user = { commonName: 'site-hub', organizations: [], nowMs: Date.now(), validDays: 1 };
    const made = await makeClientCertificate(signer, user);
    const files = ['hub.pem', 'hub.key'].map((name) => join(clusterData, '..', name)) as [string, string];
    writeFileSync(files[0], made.certificatePem);
    writeFileSync(files[1], made.privateKeyPem);
    const role = 'system:nodekeeper:hub';
    const binding = {
      metadata: { name: 'site-hub' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'User', name: 'site-hub', apiGroup: 'rbac.authorization.k8s.io' }],
    };
    expect((await api.send('POST', `${RBAC}/clusterrolebindings`, { body: binding })).status).toBe(201);
    const pair = nodeKeyPair();
    const identities = '/apis/nodekeeper.dev/v1alpha1/nodeidentities';
    const identity = { metadata: { name: 'n1' }, spec: { publicKey: pair.publicKey } };
    expect((await api.send('POST', identities, { body: identity })).status).toBe(201);
    await api.send('POST', '/api/v1/nodes', { body: { metadata: { name: 'n1' } } });
    const credentials = ['--upstream-cert', files[0], '--upstream-key', files[1]];
    const { api: hub } = await started([...data, ...upstream.slice(0, 2), ...credentials, ...authority, '--port', '0']);
    const review = { spec: {} };
    const reviews = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const who = await hub.send('POST', reviews, { body: review, token: BOB });
    expect(who).toMatchObject({ status: 201, body: { status: { userInfo: { username: 'bob' } } } });
    let ageMs = 0;
    const ofMachine = (): string => {
      ageMs += 1_000;
      return nodeToken(pair, { nodeName: 'n1', nowMs: Date.now() - ageMs, clusterId: CLUSTER_ID });
    };
    const ownNode = async () => (await hub.send('GET', '/api/v1/nodes/n1', { token: ofMachine() })).status;
    // Until the first complete round the hub asks the cluster nothing about credentials.
    await soon('the machine', async () => (await ownNode()) === 200);
    expect((await api.send('DELETE', `${identities}/n1`)).status).toBe(200);
    expect((await api.send('DELETE', '/api/v1/nodes/n1')).status).toBe(200);
    // Without its Node the hub asks again at once.
    await soon('the refusal', async () => (await ownNode()) === 401);
  });

  it('refuses in one line what it cannot be a hub of', async () => {
    const { data, upstream, authority, clusterData, tokenFile, cluster: api } = await clusterOfHub([]);
    const refused = async (expected: string, ...args: readonly string[]): Promise<void> => {
      const options = parseServeOptions([...args, '--port', '0']);
      const starting = startHub({ ...options, upstream: options.upstream! }, quiet);
      const message = await starting.then(
        (hub) => hub.stop().then(() => 'it serves'),
        (error: Error) => error.message,
      );
      expect(message).toContain(expected);
      expect(message).not.toContain('\n');
    };
    const nowhere = ['--upstream', 'https://127.0.0.1:1', '--upstream-token', tokenFile];
    await refused('there is no copy yet, so the first start needs the cluster', ...data, ...nowhere);
    await refused('name the authority of the cluster with --upstream-ca', ...data, ...upstream);
    await refused(
      'kubectl create clusterrolebinding hub --clusterrole=system:nodekeeper:hub',
      ...data,
      ...upstream,
      ...authority,
    );
    const absent = ['--site-hub', 'system:serviceaccount:kube-system:hub', '--power-off', '/none'];
    await refused('--power-off: /none cannot be started', ...data, ...upstream, ...authority, ...absent);
    await refused('is a cluster of its own', '--data', clusterData, ...upstream, ...authority);
    await hubToken(api, ['system:nodekeeper:hub']);
    const { api: hub } = await started([...data, ...upstream, ...authority, '--port', '0']);
    expect((await hub.send('GET', '/readyz')).status).toBe(200);
    await refused(`is in use by process ${process.pid}`, ...data, ...upstream, ...authority);
    writeFileSync(tokenFile, 'x'.repeat(43));
    await refused('does not accept the token or certificate of this hub (401)', ...data, ...upstream, ...authority);
    rmSync(tokenFile);
    await refused('hub-token cannot be read', ...data, ...upstream, ...authority);
  });
});
