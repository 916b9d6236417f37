/** Programs of other projects, over one idle local mode: kubectl with typed bodies, Helm and the Python client. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clientTable } from '../support/client-table.ts';
import { type Helm, makeHelm } from '../support/helm.ts';
import { findKubectls, type Kubectl, runKubectl } from '../support/kubectl.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';

const FIXTURES = new URL('../fixtures/', import.meta.url);
const CHART = fileURLToPath(new URL('chart', FIXTURES));
const PYTHON_CLIENT = fileURLToPath(new URL('python/client.py', FIXTURES));

const table = clientTable();
let local: LocalForTest;
let helm: Helm;

beforeAll(async () => {
  local = await startLocalForTest({ nodes: 0, controllers: false });
  helm = makeHelm(local.kubeconfig);
}, 90_000);

afterAll(async () => {
  helm?.remove();
  await local?.stop();
});

async function bodyOf<T>(path: string): Promise<T> {
  const answer = await local.client.send({ method: 'GET', path });
  if (answer.kind === 'failed') throw new Error(`GET ${path}`, { cause: answer.cause });
  return answer.body as T;
}

/** kubectl creates these as protobuf from 1.32. Before 1.21 its CronJobs are of batch/v1beta1, which is not served. */
const CREATED = [
  'namespace team',
  'configmap config --from-literal=a=b',
  'secret generic secret --from-literal=a=b',
  'serviceaccount builder',
  'deployment web --image=nginx --replicas=2',
  'job once --image=busybox -- true',
  'cronjob hourly --image=busybox --schedule=@hourly -- true',
  'role reader --verb=get --resource=pods',
  'rolebinding reader --role=reader --user=ada',
  'clusterrole viewer --verb=get --resource=nodes',
  'clusterrolebinding viewer --clusterrole=viewer --user=ada',
  'quota small --hard=pods=2',
  'poddisruptionbudget web --selector=app=web --min-available=1',
  'priorityclass high --value=1000',
  'service clusterip svc --tcp=80:8080',
  'ingress ing --rule=a.example/=svc:80',
];

describe('kubectl', () => {
  const newest = findKubectls()
    .toSorted((a, b) => a.minor - b.minor)
    .at(-1);

  const run = async (kubectl: Kubectl, args: string) => {
    const { exitCode, stdout, stderr } = await runKubectl(kubectl, args.split(' '), { kubeconfig: local.kubeconfig });
    expect(exitCode, `${args}: ${stderr}`).toBe(0);
    return stdout;
  };

  const passed = ({ minor }: Kubectl, what: string) => table.passed({ client: 'kubectl', version: `1.${minor}`, what });

  it('creates, scales, exposes and deletes what applications consist of', async () => {
    const kubectl = newest as Kubectl;
    const created = CREATED.filter((what) => kubectl.minor >= 21 || !what.startsWith('cronjob'));
    for (const what of created) expect(await run(kubectl, `create ${what}`)).toMatch(/ created\n$/);
    await run(kubectl, 'scale deployment web --replicas=3');
    await run(kubectl, 'expose deployment web --port=80');
    await run(kubectl, 'autoscale deployment web --max=5');
    await run(kubectl, 'set image deployment/web nginx=nginx:2');
    expect(await run(kubectl, 'get deployment web')).toMatch(/web +0\/3 +0 +0 +\d+s/);
    expect(await run(kubectl, 'get service web -o jsonpath={.spec.clusterIP}')).toMatch(/^10\.96\./);
    // Before 1.27 explain needs definitions in the protobuf form of OpenAPI v2, which is empty here.
    if (kubectl.minor >= 27)
      expect(await run(kubectl, 'explain deployment.spec.strategy.type')).toContain('Recreate or RollingUpdate');
    expect(await run(kubectl, 'delete deployment,service,hpa web')).toMatch(/deleted/);
    if (kubectl.minor >= 27) {
      passed(kubectl, '`create` of 16 kinds, `scale`, `expose`, `autoscale`, `set image`, `explain`, `delete`');
    }
  }, 120_000);

  const KUSTOMIZATION = fileURLToPath(new URL('kustomization', FIXTURES));
  const settings = (name: string) =>
    JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: { set: 'pruned' } } });

  it.each(findKubectls().filter(({ minor }) => minor >= 27))('$name shows what nodes use', async (kubectl) => {
    const node = `measured-${kubectl.minor}-${kubectl.name.length}`;
    const capacity = { cpu: '2', memory: '4Gi', pods: '10' };
    const body = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: node },
      status: { capacity, allocatable: capacity },
    };
    await local.client.send({ method: 'POST', path: '/api/v1/nodes', body });
    const metadata = { name: node, annotations: { 'nodekeeper.dev/usage': '0.500 1073741824 60 1767225600' } };
    const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    await local.client.send({ method: 'POST', path, body: { metadata, spec: { holderIdentity: node } } });
    expect(await run(kubectl, `top node ${node} --no-headers`)).toMatch(/^measured-\S+ +500m +25% +1024Mi +25% *\n$/);
    passed(kubectl, '`top node`');
  });

  it.each(findKubectls().filter(({ minor }) => minor >= 27))('$name applies a kustomization', async (kubectl) => {
    const applied = (await run(kubectl, `apply -k ${KUSTOMIZATION}`)).split('\n');
    const [configMap = '', account = ''] = applied.toSorted((a, b) => b.length - a.length);
    expect(configMap).toMatch(/^configmap\/site-settings-\w{10} created$/);
    expect(account).toBe('serviceaccount/site-reader created');
    await run(kubectl, `diff -k ${KUSTOMIZATION}`);
    await run(kubectl, `delete -k ${KUSTOMIZATION}`);
    passed(kubectl, '`apply -k`, `diff -k`, `delete -k`');
  });

  it.each(findKubectls().filter(({ minor }) => minor >= 27))(
    '$name prunes what is no longer applied',
    async (kubectl) => {
      const prune = (...names: readonly string[]) =>
        runKubectl(
          kubectl,
          ['apply', '-f', '-', '--prune', '-l', 'set=pruned', '--prune-allowlist=core/v1/ConfigMap', '-n', 'default'],
          { kubeconfig: local.kubeconfig, stdin: names.map(settings).join('\n') },
        );
      expect(await prune('first', 'second')).toMatchObject({ exitCode: 0 });
      expect((await prune('second')).stdout).toMatch(/configmap\/first pruned/);
      expect(await run(kubectl, 'get configmaps -l set=pruned -o name -n default')).toBe('configmap/second\n');
      await run(kubectl, 'delete configmap second -n default');
      passed(kubectl, '`apply --prune`');
    },
  );

  it.each(findKubectls().filter(({ minor }) => minor >= 27))('$name debug creates a pod on a node', async (kubectl) => {
    const node = `debugged-${kubectl.minor}-${kubectl.name.length}`;
    const body = { apiVersion: 'v1', kind: 'Node', metadata: { name: node } };
    await local.client.send({ method: 'POST', path: '/api/v1/nodes', body });
    const created = await runKubectl(
      kubectl,
      ['debug', `node/${node}`, '--image=busybox', '--profile=legacy', '--attach=false', '--', 'true'],
      { kubeconfig: local.kubeconfig },
    );
    expect(created).toMatchObject({ exitCode: 0 });
    const pods = await bodyOf<{ items: { metadata: { name: string }; spec: Record<string, unknown> }[] }>(
      `/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3D${node}`,
    );
    expect(pods.items).toMatchObject([{ spec: { hostPID: true, hostNetwork: true, nodeName: node } }]);
    passed(kubectl, '`debug node/NAME`');
  });
});

describe('Helm', () => {
  it('installs, upgrades, rolls back and uninstalls a chart with a hook', async () => {
    expect(helm.run('install', 'small', CHART)).toContain('STATUS: deployed');
    expect(helm.run('upgrade', 'small', CHART, '--set', 'replicas=5')).toContain('REVISION: 2');
    const replicas = async () => {
      const path = '/apis/apps/v1/namespaces/default/deployments/small';
      return (await bodyOf<{ spec?: { replicas?: number } }>(path)).spec?.replicas;
    };
    expect(await replicas()).toBe(5);
    const hook = '/api/v1/namespaces/default/configmaps/small-hook';
    expect(await bodyOf(hook)).toMatchObject({ data: { revision: '2' } });
    helm.run('rollback', 'small', '1');
    expect(await replicas()).toBe(2);
    expect(JSON.parse(helm.run('list', '-o', 'json'))).toMatchObject([{ name: 'small', revision: '3' }]);
    expect(helm.run('uninstall', 'small')).toContain('uninstalled');
    const secrets = '/api/v1/namespaces/default/secrets?labelSelector=owner%3Dhelm';
    expect((await bodyOf<{ items: unknown[] }>(secrets)).items).toEqual([]);
    const [version = ''] = /\d+\.\d+/.exec(helm.run('version', '--short')) ?? [];
    const what = '`install`, `upgrade`, `rollback`, `list`, `uninstall` of a chart with seven kinds and a hook';
    table.passed({ client: 'Helm', version, what });
  }, 120_000);
});

describe('the Python client', () => {
  it('receives live events of a watch, and changes a scale', async () => {
    const { stdout } = await promisify(execFile)('/usr/bin/python3', [PYTHON_CLIENT], {
      env: { KUBECONFIG: local.kubeconfig, PATH: process.env['PATH'] ?? '' },
      timeout: 90_000,
    });
    const { version, ...done } = JSON.parse(stdout) as { version: string };
    expect(done).toEqual({
      events: ['ADDED', 'MODIFIED', 'DELETED'],
      replicas: 3,
      owners: ['python'],
      listed: ['applied'],
    });
    const what = 'live watch, typed writes, scale, dynamic client, server-side apply';
    table.passed({ client: 'Python `kubernetes`', version: version.split('.')[0] ?? '', what });
  }, 120_000);
});

it('docs/clients.md has every row of this run', () => {
  expect(table.missing()).toEqual([]);
});
