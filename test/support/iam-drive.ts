/**
 * The whole system on this machine, made to do everything it can do within a minute, while every call that its
 * functions make to AWS is written down: what a proof of their permissions rests on.
 */
import { createHash, randomBytes } from 'node:crypto';
import { request } from 'node:https';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { CLOUD_SOCKET, sendCloudCommand } from '../../demo/ec2/control.ts';
import type { ApiClient, ApiMethod } from '../../demo/fleet/api-client.ts';
import { FLEET_SOCKET, sendFleetCommand } from '../../demo/fleet/control.ts';
import { CLUSTER_TAG } from '../../shared/fleet/instances/cluster-tag.ts';
import { VOLUME_ID_ANNOTATION } from '../../shared/fleet/nodes/attached-volumes.rule.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { KUBERNETES_VERSION } from '../../shared/kinds/generated/version.ts';
import { makeRequest } from './certificate-request.ts';
import { DEFINITIONS, widget, widgetDefinition, widgetsIn } from './custom-definition.ts';
import { apiClientOf } from './kubeconfig.ts';
import { type LocalForTest, startLocalForTest } from './local.ts';
import { nodeKeyPair, nodeToken } from './node-key-pair.ts';
import { until } from './until.ts';

const POLICY: Partial<Policy> = {
  nodeMonitorGracePeriodSeconds: 10,
  nodeStartupGracePeriodSeconds: 10,
  beatIntervalSeconds: 2,
  leaseDurationSeconds: 10,
  nodeEvictionRatePerSecond: 1,
  secondaryNodeEvictionRatePerSecond: 1,
  podEvictionTimeoutSeconds: 1,
  automaticOutOfService: 'stopped',
  automaticOutOfServiceAfterSeconds: 0,
  cloudYoungInstanceSeconds: 0,
  podGcPeriodSeconds: 5,
  orphanQuarantineSeconds: 5,
  terminatedPodGcThreshold: 1,
  nodesMarkedPerTickMax: 1,
  clusterCIDRs: ['10.96.0.0/16'],
  // A pod that can be bound again is not due at once: node-monitor wakes the scheduler for it.
  podInitialBackoffSeconds: 5,
};
const CLUSTER_ID = 'nodekeeper';
const PODS = '/api/v1/namespaces/default/pods';
const EVENTS = '/api/v1/namespaces/default/events';
const NODES = '/api/v1/nodes';
const ALL_LEASES = '/apis/coordination.k8s.io/v1/leases';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const OWN = '/apis/nodekeeper.dev/v1alpha1';
/** Limit of one wait; a busy machine is slow. */
const STORY_MS_MAX = 180_000;
/** Rounds until a function of a stream is the one that acts: a tick or another stream is quicker as often as not. */
const ROUNDS_MAX = 7;

type Send = (
  method: ApiMethod,
  path: string,
  body?: unknown,
  contentType?: string,
) => Promise<{ readonly status: number; readonly body: Record<string, unknown> }>;

interface Stage {
  readonly local: LocalForTest;
  /** Sends as the administrator. @throws Error for no answer and for a fault of the server */
  readonly send: Send;
  /** Until the object is deleted. */
  gone(path: string): Promise<void>;
  /** Until the text of the object holds this. */
  shows(path: string, text: string): Promise<void>;
  /** Until it does not hold this. @throws Error with the object as it was last */
  lacks(path: string, text: string): Promise<void>;
  /** For the local EC2. */
  ec2(action: string, parameters: Readonly<Record<string, string>>): Promise<string>;
  power(verb: 'stop' | 'start' | 'terminate', name: string): Promise<void>;
  machines(verb: 'silence' | 'beat', ...names: string[]): Promise<void>;
}

/** @param recordFile where the record is written when all is done */
export async function driveEverything(recordFile: string, say: (line: string) => void = () => {}): Promise<void> {
  const startedMs = performance.now();
  const seconds = () => `${((performance.now() - startedMs) / 1_000).toFixed(1)} s`;
  const local = await startLocalForTest({
    home: 'aws',
    nodes: 9,
    ec2Nodes: 3,
    policy: POLICY,
    recordCallsFile: recordFile,
  });
  try {
    say(`started after ${seconds()}`);
    const stage = stageOf(local);
    const stories = {
      requests,
      identities,
      accounts,
      watches,
      logs,
      silence,
      taintedByHand,
      darkZone,
      machinesInTheCloud,
      podGarbage,
      placedPods,
      claimedVolumes,
      routedServices,
      customResources,
      deployedPods,
      refusedSets,
      movedPod,
      deletedNode,
      newInstance,
      strangers,
      massFailure,
    };
    await firstWatches(stage);
    await until(async () => (await readyNodes(stage)).length >= 9, {
      withinMs: STORY_MS_MAX,
      what: 'nine nodes that are Ready',
    });
    say(`all nodes Ready after ${seconds()}`);
    // Before the others, which silence several nodes in one tick: their marks are sent to node-marker.
    await silenceAlone(stage);
    say(`silenceAlone finished after ${seconds()}`);
    const ends = await Promise.allSettled(
      Object.entries(stories).map(async ([name, story]) => {
        try {
          await story(stage);
        } catch (cause) {
          throw new Error(`the story of ${name} did not come to its end`, { cause });
        }
        say(`${name} finished after ${seconds()}`);
      }),
    );
    const faults = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []));
    if (faults.length > 0) throw new AggregateError(faults, 'not every story came to its end');
  } catch (cause) {
    throw new Error(`local mode said:\n${local.output().slice(-4_000)}`, { cause });
  } finally {
    await local.stop();
  }
}

/** A pod with a claim: the binder asks the machine of the node that the scheduler selected. */
async function claimedVolumes({ send, shows }: Stage): Promise<void> {
  const namespace = '/api/v1/namespaces/default';
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } };
  await send('POST', `${namespace}/persistentvolumeclaims`, { metadata: { name: 'driven' }, spec });
  const byHand = { ...spec, storageClassName: 'by-hand' };
  const capacity = { storage: '1Mi' };
  await send('POST', '/api/v1/persistentvolumes', {
    metadata: { name: 'by-hand' },
    spec: { capacity, accessModes: spec.accessModes, storageClassName: 'by-hand', hostPath: { path: '/driven' } },
  });
  await send('POST', `${namespace}/persistentvolumeclaims`, { metadata: { name: 'by-hand' }, spec: byHand });
  await shows(`${namespace}/persistentvolumeclaims/by-hand`, '"Bound"');
  const volumes = [{ name: 'd', persistentVolumeClaim: { claimName: 'driven' } }];
  const containers = [{ name: 'c', image: 'i' }];
  await send('POST', `${namespace}/pods`, { metadata: { name: 'driven' }, spec: { volumes, containers } });
  await shows(`${namespace}/persistentvolumeclaims/driven`, 'volume.kubernetes.io/storage-provisioner');
  const { body } = await send('GET', `${namespace}/persistentvolumeclaims/driven`);
  const { annotations } = body['metadata'] as { annotations: Record<string, string> };
  const path = `/apis/nodekeeper.dev/v1alpha1/nodevolumes/${annotations['volume.kubernetes.io/selected-node']}`;
  const works = (await send('GET', path)).body['items'] as { id: string }[];
  for (const { id } of works) await send('DELETE', `${path}/${id}`);
  // A Lease of an election.
  const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
  await send('POST', leases, { metadata: { name: 'driven' }, spec: { holderIdentity: 'one' } });
  const { body: lease } = await send('GET', `${leases}/driven`);
  await send('PUT', `${leases}/driven`, { ...lease, spec: { holderIdentity: 'two' } });
}

/** A node that routes Services joins the list of those that are notified of changes, and leaves it. */
async function routedServices({ send, gone }: Stage): Promise<void> {
  const node = { metadata: { name: 'routes-services', annotations: { 'nodekeeper.dev/services': 'nftables' } } };
  await mustBe(201, send('POST', NODES, node));
  const services = '/api/v1/namespaces/default/services';
  const spec = { ports: [{ port: 80 }] };
  await mustBe(201, send('POST', services, { metadata: { name: 'routed' }, spec }));
  const policies = '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies';
  await mustBe(201, send('POST', policies, { metadata: { name: 'driven' }, spec: { podSelector: {} } }));
  await send('DELETE', `${policies}/driven`);
  const resources = [{ group: '', resource: 'services', after: '0' }];
  await mustBe(201, send('POST', `${OWN}/changereads`, { spec: { resources, consistent: true } }));
  await send('DELETE', `${services}/routed`);
  await send('DELETE', `${NODES}/routes-services`);
  await gone(`${NODES}/routes-services`);
}

/** A definition with an object that is deleted with it. */
async function customResources({ send, gone }: Stage): Promise<void> {
  const definition = `${DEFINITIONS}/widgets.example.com`;
  await mustBe(201, send('POST', DEFINITIONS, widgetDefinition()));
  await mustBe(201, send('POST', widgetsIn('default'), widget('driven')));
  await mustBe(200, send('DELETE', definition));
  await gone(definition);
}

/** Names of the nodes that are Ready. */
async function readyNodes({ send }: Pick<Stage, 'send'>): Promise<readonly string[]> {
  const { body } = await send('GET', NODES);
  const items = body['items'] as {
    metadata: { name: string };
    status?: { conditions?: { type: string; status: string }[] };
  }[];
  const isReady = ({ status }: (typeof items)[number]) =>
    status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') === true;
  return items.filter(isReady).map(({ metadata }) => metadata.name);
}

function stageOf(local: LocalForTest): Stage {
  const send = sendAs(local.client);
  const wait = <T>(what: string, look: () => Promise<T | undefined | false>) =>
    until(look, { withinMs: STORY_MS_MAX, what });
  return {
    local,
    send,
    gone: async (path) => {
      await wait(`the end of ${path}`, async () => (await send('GET', path)).status === 404);
    },
    shows: async (path, text) => {
      await wait(`${text} in ${path}`, async () => JSON.stringify((await send('GET', path)).body).includes(text));
    },
    async lacks(path, text) {
      let last = '';
      const look = async (): Promise<boolean> => {
        last = JSON.stringify((await send('GET', path)).body);
        return !last.includes(text);
      };
      await wait(`the end of ${text} in ${path}`, look).catch((cause: unknown) => {
        throw new Error(`the last answer was ${last}`, { cause });
      });
    },
    async ec2(action, parameters) {
      const { endpoint = '' } = await listedCloud(local);
      const answer = await fetch(endpoint, {
        method: 'POST',
        headers: {
          authorization: 'AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/ec2/aws4_request, Signature=0',
          'content-type': 'application/x-www-form-urlencoded',
        },
        body: new URLSearchParams({ Action: action, ...parameters }).toString(),
      });
      const text = await answer.text();
      if (answer.status !== 200) throw new Error(`${action}: ${text}`);
      return text;
    },
    async power(verb, name) {
      const outcome = await sendCloudCommand(join(local.dataDir, CLOUD_SOCKET), { verb, names: [name] });
      if (outcome.kind !== 'replied' || outcome.reply.kind !== 'done') throw new Error(JSON.stringify(outcome));
    },
    async machines(verb, ...names) {
      const outcome = await sendFleetCommand(join(local.dataDir, FLEET_SOCKET), { verb, names });
      if (outcome.kind !== 'replied' || outcome.reply.kind !== 'done') throw new Error(JSON.stringify(outcome));
    },
  };
}

/** The local EC2: where it answers, and its instances. */
async function listedCloud(local: LocalForTest) {
  const outcome = await sendCloudCommand(join(local.dataDir, CLOUD_SOCKET), { verb: 'list' });
  if (outcome.kind !== 'replied' || outcome.reply.kind !== 'listed') throw new Error('the local EC2 is not there');
  return outcome.reply;
}

const sendAs =
  (client: ApiClient): Send =>
  async (method, path, body, contentType) => {
    const answer = await client.send({
      method,
      path,
      ...(body === undefined ? {} : { body }),
      ...(contentType === undefined ? {} : { contentType }),
    });
    if (answer.kind === 'failed') throw new Error(`${method} ${path}: no answer`, { cause: answer.cause });
    if (answer.status >= 500) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return { status: answer.status, body: (answer.body ?? {}) as Record<string, unknown> };
  };

const MERGE = 'application/merge-patch+json';
const APPLY = 'application/apply-patch+yaml';
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

async function mustBe(wanted: number, answer: ReturnType<Send>): Promise<Record<string, unknown>> {
  const { status, body } = await answer;
  if (status !== wanted) throw new Error(`${status} instead of ${wanted}: ${JSON.stringify(body)}`);
  return body;
}

const pod = (name: string, nodeName: string | undefined, more: { metadata?: object; spec?: object } = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, ...more.metadata },
  spec: {
    ...(nodeName === undefined ? {} : { nodeName }),
    // The longest time in which a recovered machine terminates a deleted pod.
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image: 'registry.example/main:1' }],
    ...more.spec,
  },
});
/** Our scheduler leaves such a pod alone. */
const OF_PEOPLE = { schedulerName: 'by-hand' };
/** Tolerates what befalls a node for so long. */
const tolerating = (seconds: number) => ({
  tolerations: [{ operator: 'Exists', effect: 'NoExecute', tolerationSeconds: seconds }],
});

/** What people do with kubectl. */
async function requests({ send, gone }: Stage): Promise<void> {
  const paths = ['/api', '/apis', '/openapi/v3', '/version', '/api/v1/pods?limit=2', '/api/v1/events', LEASES];
  for (const path of [...paths, `${OWN}/clusterstatuses`, `${OWN}/silencehistograms`]) {
    await mustBe(200, send('GET', path));
  }
  const copied = [{ group: '', resource: 'configmaps', after: '0' }];
  await mustBe(201, send('POST', `${OWN}/changereads`, { spec: { resources: copied } }));
  await mustBe(
    201,
    send('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } }),
  );
  const budget = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'one' },
    spec: { minAvailable: 0, selector: { matchLabels: { app: 'one' } } },
  };
  await mustBe(201, send('POST', '/apis/policy/v1/namespaces/team/poddisruptionbudgets', budget));
  const inTeam = '/api/v1/namespaces/team/pods';
  for (const name of ['one', 'two', 'three']) {
    await mustBe(
      201,
      send('POST', inTeam, pod(name, undefined, { metadata: { labels: { app: 'one' } }, spec: OF_PEOPLE })),
    );
    await mustBe(
      201,
      send('POST', `${inTeam}/${name}/binding`, {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name },
        target: { apiVersion: 'v1', kind: 'Node', name: 'edge-a-2' },
      }),
    );
  }
  await mustBe(200, send('PATCH', `${inTeam}/one`, { metadata: { labels: { app: 'one', more: 'yes' } } }, MERGE));
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
  await mustBe(200, send('PATCH', `${inTeam}/one/status`, { status }, MERGE));
  await mustBe(200, send('GET', `${inTeam}?labelSelector=app%3Done`));
  await mustBe(
    201,
    send('POST', `${inTeam}/one/eviction`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'one', namespace: 'team' },
    }),
  );
  await send('DELETE', `${inTeam}/one?gracePeriodSeconds=0`);
  await mustBe(200, send('DELETE', `${inTeam}?gracePeriodSeconds=0`));
  await mustBe(
    200,
    send(
      'PATCH',
      `${NODES}/edge-a-2?fieldManager=someone`,
      { apiVersion: 'v1', kind: 'Node', metadata: { name: 'edge-a-2', labels: { colour: 'red' } } },
      APPLY,
    ),
  );
  await mustBe(200, send('PATCH', `${NODES}/edge-a-2`, { spec: { unschedulable: true } }, MERGE));
  const lease = (namespace: string, name: string) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace },
    spec: { holderIdentity: name, leaseDurationSeconds: 10 },
  });
  const leases = (namespace: string) => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  await mustBe(201, send('POST', leases('team'), lease('team', 'leader')));
  await mustBe(201, send('POST', LEASES, lease('kube-node-lease', 'stray')));
  await mustBe(200, send('PATCH', `${LEASES}/stray`, { spec: { leaseDurationSeconds: 11 } }, MERGE));
  await mustBe(200, send('GET', `${LEASES}/stray`));
  await mustBe(200, send('DELETE', `${LEASES}/stray`));
  await mustBe(404, send('GET', `${LEASES}/stray`));
  await mustBe(
    201,
    send('POST', '/api/v1/namespaces/team/events', {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'told', namespace: 'team' },
      involvedObject: { kind: 'Pod', namespace: 'team', name: 'two' },
      reason: 'Told',
      message: 'by a test',
      type: 'Normal',
    }),
  );
  await mustBe(200, send('DELETE', '/api/v1/namespaces/team'));
  await gone(`${leases('team')}/leader`);
}

/** Nodes without machines, of one moment. node-marker marks them, because a tick marks only one itself. */
async function massFailure({ send, shows }: Stage): Promise<void> {
  const conditions = [{ type: 'Ready', status: 'True' }];
  const names = ['mass-0', 'mass-1', 'mass-2', 'mass-3'];
  await Promise.all(
    names.map((name) =>
      mustBe(201, send('POST', NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { conditions } })),
    ),
  );
  await mustBe(201, send('POST', PODS, pod('on-mass-0', 'mass-0')));
  await mustBe(200, send('PATCH', `${PODS}/on-mass-0/status`, { status: { phase: 'Running', conditions } }, MERGE));
  for (const name of names) await shows(`${NODES}/${name}`, 'NodeStatusUnknown');
  await shows(`${EVENTS}?fieldSelector=involvedObject.name%3Dmass-0`, 'NodeNotReady');
}

/** A node that fails alone is marked by the tick itself, its pods too. */
async function silenceAlone(stage: Stage): Promise<void> {
  const { send, shows, gone, machines } = stage;
  const node = 'edge-a-1';
  await mustBe(201, send('POST', PODS, pod('on-alone', node, { spec: tolerating(3_600) })));
  await shows(`${PODS}/on-alone`, 'Running');
  await machines('silence', node);
  await shows(`${NODES}/${node}`, 'NodeStatusUnknown');
  await machines('beat', node);
  await reachable(stage, node);
  await mustBe(200, send('DELETE', `${PODS}/on-alone?gracePeriodSeconds=0`));
  await gone(`${PODS}/on-alone`);
}

/** A machine enrols by a bootstrap token, beats by its own key, and is forgotten. */
async function identities({ local, send }: Stage): Promise<void> {
  const id = `t${randomBytes(4).toString('hex')}`;
  const secret = randomBytes(32).toString('base64url');
  await mustBe(
    201,
    send('POST', `${OWN}/bootstraptokens`, {
      apiVersion: 'nodekeeper.dev/v1alpha1',
      kind: 'BootstrapToken',
      metadata: { name: id },
      spec: { secretSha256: sha256(secret), expires: new Date(Date.now() + 3_600_000).toISOString() },
    }),
  );
  await mustBe(200, send('GET', `${OWN}/bootstraptokens`));
  await mustBe(200, send('GET', `${OWN}/bootstraptokens/${id}`));
  const nodeName = 'new-machine';
  const pair = nodeKeyPair();
  await as(local, `${id}.${secret}`, async (sendAsToken) => {
    await mustBe(
      201,
      sendAsToken('POST', `${OWN}/nodeidentities`, {
        apiVersion: 'nodekeeper.dev/v1alpha1',
        kind: 'NodeIdentity',
        metadata: { name: nodeName },
        spec: { publicKey: pair.publicKey },
      }),
    );
  });
  const token = nodeToken(pair, { nodeName, nowMs: Date.now(), clusterId: CLUSTER_ID });
  await as(local, token, async (sendAsNode) => {
    await mustBe(201, sendAsNode('POST', NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName } }));
    await mustBe(
      201,
      sendAsNode('POST', LEASES, {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: nodeName, namespace: 'kube-node-lease' },
        spec: { holderIdentity: nodeName, leaseDurationSeconds: 10 },
      }),
    );
    await mustBe(200, sendAsNode('PATCH', `${LEASES}/${nodeName}`, { spec: { leaseDurationSeconds: 10 } }, MERGE));
    const { request } = await makeRequest({ commonName: `system:node:${nodeName}`, organizations: ['system:nodes'] });
    const signerName = 'kubernetes.io/kube-apiserver-client-kubelet';
    await mustBe(
      201,
      sendAsNode('POST', '/apis/certificates.k8s.io/v1/certificatesigningrequests', {
        metadata: { name: nodeName },
        spec: { request, signerName, usages: ['digital signature', 'client auth'] },
      }),
    );
  });
  // The watch function reads the keys of a machine that watches.
  await follow(local, `${NODES}?fieldSelector=metadata.name%3D${nodeName}&watch=1&timeoutSeconds=1`, token);
  await mustBe(200, send('GET', `${OWN}/nodeidentities`));
  await mustBe(200, send('GET', `${OWN}/nodeidentities/${nodeName}`));
  await mustBe(200, send('DELETE', `${OWN}/nodeidentities/${nodeName}`));
  await mustBe(200, send('DELETE', `${OWN}/bootstraptokens/${id}`));
  await mustBe(200, send('DELETE', `${NODES}/${nodeName}`));
}

/** A service account signs in with a token, and reads what a role allows. */
async function accounts({ local, send }: Stage): Promise<void> {
  const inDefault = '/api/v1/namespaces/default/serviceaccounts';
  await mustBe(201, send('POST', inDefault, { metadata: { name: 'reader' } }));
  await mustBe(
    201,
    send('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: 'reader' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'ServiceAccount', name: 'reader', namespace: 'default' }],
    }),
  );
  const issued = await mustBe(201, send('POST', `${inDefault}/reader/token`, { spec: { audiences: [] } }));
  const { token } = issued['status'] as { readonly token: string };
  await as(local, token, async (sendAsAccount) => {
    await mustBe(200, sendAsAccount('GET', '/api/v1/namespaces/default/pods'));
    await mustBe(200, sendAsAccount('GET', '/openid/v1/jwks'));
    await mustBe(403, sendAsAccount('GET', '/api/v1/nodes'));
  });
  await follow(local, '/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1', token);
  await mustBe(200, send('DELETE', `${inDefault}/reader`));
}

async function as(local: LocalForTest, token: string, act: (send: Send) => Promise<void>): Promise<void> {
  const client = apiClientOf({ ...local.access, token }, { connectionsMax: 2, timeoutMs: 30_000 });
  try {
    await act(sendAs(client));
  } finally {
    client.close();
  }
}

/** Watches from now on and from a moment before, as streams. */
async function watches({ local, send }: Stage): Promise<void> {
  const one = 'fieldSelector=metadata.name%3Dedge-b-1';
  const paths = [NODES, '/api/v1/pods', LEASES, `${NODES}?${one}`, `${LEASES}?${one}`, `${ALL_LEASES}?${one}`];
  await Promise.all(
    paths.map(async (path) => {
      const { body } = await send('GET', path);
      const version = (body['metadata'] as { resourceVersion?: string } | undefined)?.resourceVersion;
      const watch = `${path}${path.includes('?') ? '&' : '?'}watch=1&timeoutSeconds=4`;
      await follow(local, watch);
      if (version !== undefined) await follow(local, `${watch}&resourceVersion=${version}`);
    }),
  );
  for (const path of [`${OWN}/nodeidentities`, `${OWN}/decisions`])
    await follow(local, `${path}?watch=1&timeoutSeconds=1`);
}

/** Two logs of one container: the second replaces the first. The administrator plays the agent. */
async function logs({ local, send }: Stage): Promise<void> {
  const nodeInfo = { kubeletVersion: `${KUBERNETES_VERSION}-nodekeeper.0.1.0` };
  await send('POST', NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'log-node' }, status: { nodeInfo } });
  const spec = {
    nodeName: 'log-node',
    containers: [{ name: 'main', image: 'none' }],
    tolerations: [{ operator: 'Exists' }],
  };
  await send('POST', PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'logged' }, spec });
  const status = { containerStatuses: [{ name: 'main', state: { running: {} } }] };
  await send('PATCH', `${PODS}/logged/status`, { status }, 'application/merge-patch+json');
  const requests = `${OWN}/nodelogs/log-node`;
  const answered = new Set<string>();
  const chunk = { sender: 'drive', data: gzipSync('a line\n').toString('base64') };
  const answerNext = async (end: object): Promise<string> => {
    const id = await until(
      async () => {
        const { items = [] } = (await send('GET', requests)).body as { items?: { id: string }[] };
        return items.map((each) => each.id).find((each) => !answered.has(each));
      },
      { withinMs: STORY_MS_MAX, what: 'a request for a log' },
    );
    answered.add(id);
    await send('PUT', `${requests}/${id}`, { ...chunk, sequence: 0, ...end });
    return id;
  };
  const first = follow(local, `${PODS}/logged/log?follow=true`);
  const firstId = await answerNext({});
  const isOpened = async (): Promise<boolean> =>
    (await send('PUT', `${requests}/${firstId}`, { ...chunk, sequence: 1 })).body['outcome'] === 'stored';
  await until(isOpened, { withinMs: STORY_MS_MAX, what: 'a client that reads the log' });
  const second = follow(local, `${PODS}/logged/log?follow=true`);
  await answerNext({ end: {} });
  await Promise.all([first, second]);
}

/** Watches of what every cluster has from the start, before anybody asked for it. */
async function firstWatches({ local }: Stage): Promise<void> {
  await Promise.all(
    ['/api/v1/namespaces', '/apis/scheduling.k8s.io/v1/priorityclasses'].map((path) =>
      follow(local, `${path}?watch=1&timeoutSeconds=1`),
    ),
  );
}

/** Reads an answer to its end, wherever it is to be had. */
async function follow(local: LocalForTest, path: string, bearer = local.access.token): Promise<void> {
  let at: string | undefined = new URL(path, local.access.url).href;
  for (let redirects = 0; redirects < 3 && at !== undefined; redirects += 1)
    at = (await readOff(local, at, bearer)).location;
  if (at !== undefined) throw new Error(`${path} leads from one place to another`);
}

/** Reads as the administrator; `location` of a redirect. */
function readOff(local: LocalForTest, at: string, bearer = local.access.token) {
  const { ca } = local.access;
  const options = { ...(ca === undefined ? {} : { ca }), headers: { authorization: `Bearer ${bearer}` } };
  return new Promise<{ readonly status: number | undefined; readonly location: string | undefined }>(
    (resolve, reject) => {
      const sent = request(at, options, (answer) => {
        answer.resume();
        answer.on('error', reject);
        const { statusCode: status, headers } = answer;
        answer.on('end', () => resolve({ status, location: status === 307 ? headers.location : undefined }));
      });
      sent.on('error', reject);
      sent.end();
    },
  );
}

/**
 * Nodes stop beating, their pods are evicted by their tolerations, and the nodes recover. Repeated if object-stream or
 * a tick of node-monitor was always faster, and health-stream found no taint to lift.
 */
async function silence(stage: Stage): Promise<void> {
  const { send, gone, shows, machines } = stage;
  const node = 'edge-a-1';
  // Object-stream itself evicts a pod that is due when it receives the taint. Later ones get a timer, for evictor.
  const spec = tolerating(8);
  const atOnce = { ...spec, terminationGracePeriodSeconds: 0 };
  await mustBe(201, send('POST', PODS, pod('leaves', node, { spec })));
  await mustBe(
    201,
    send('POST', PODS, pod('finalized', node, { metadata: { finalizers: ['example.com/hold'] }, spec })),
  );
  await mustBe(201, send('POST', PODS, pod('goes-at-once', node, { spec: atOnce })));
  await mustBe(201, send('POST', PODS, pod('stays', node, { spec: tolerating(3_600) })));
  // Its node's last pod: no timer stays behind.
  await mustBe(201, send('POST', PODS, pod('alone', 'edge-b-1', { spec })));
  await machines('silence', node, 'edge-b-1');
  await shows(`${NODES}/${node}`, '"effect":"NoExecute"');
  for (const name of ['leaves', 'finalized', 'alone']) await shows(`${PODS}/${name}`, 'deletionTimestamp');
  await gone(`${PODS}/goes-at-once`);
  await shows(`${NODES}/edge-b-1`, '"effect":"NoExecute"');
  await machines('beat', node, 'edge-b-1');
  await gone(`${PODS}/leaves`);
  await reachable(stage, node, 'edge-b-1');
  // Object-stream lifts by another rule.
  for (let round = 1; !(await isDecidedByChange(stage, { act: 'TaintLifted' }, 'noExecute')); round += 1) {
    if (round === ROUNDS_MAX) throw new Error(`health-stream lifted no taint in ${round} returns of two nodes`);
    await machines('silence', node, 'edge-b-1');
    for (const each of [node, 'edge-b-1']) await shows(`${NODES}/${each}`, '"effect":"NoExecute"');
    await machines('beat', node, 'edge-b-1');
    await reachable(stage, node, 'edge-b-1');
  }
  await mustBe(200, send('PATCH', `${PODS}/finalized`, { metadata: { finalizers: null } }, MERGE));
  await mustBe(200, send('DELETE', `${PODS}/stays?gracePeriodSeconds=0`));
}

/**
 * A pod without tolerations: the stream record of the taint deletes it, without a timer. Repeated if the gate was
 * closed at that moment and a tick deleted it.
 */
async function taintedByHand({ send, gone }: Stage): Promise<void> {
  const node = `${NODES}/by-hand`;
  const taint = (taints: unknown) => mustBe(200, send('PATCH', node, { spec: { taints } }, MERGE));
  await mustBe(201, send('POST', NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'by-hand' } }));
  for (let round = 1; ; round += 1) {
    await mustBe(201, send('POST', PODS, pod('at-once', 'by-hand', { spec: { terminationGracePeriodSeconds: 0 } })));
    await taint([{ key: 'by-hand', effect: 'NoExecute' }]);
    await gone(`${PODS}/at-once`);
    await taint(null);
    if (await isDecidedByChange({ send }, { act: 'PodDeleted', pod: 'default/at-once' }, 'podEviction')) break;
    if (round === ROUNDS_MAX) throw new Error(`object-stream ended no pod in ${round} rounds`);
  }
  await mustBe(200, send('DELETE', node));
}

async function reachable({ lacks }: Stage, ...nodes: string[]): Promise<void> {
  for (const node of nodes) await lacks(`${NODES}/${node}`, 'node.kubernetes.io/unreachable');
}

/** Whether there is such a decision by this rule outside of any tick. */
async function isDecidedByChange(
  { send }: Pick<Stage, 'send'>,
  fields: Readonly<Record<string, string>>,
  rule: string,
): Promise<boolean> {
  const selector = Object.entries(fields).map(([name, value]) => `${name}=${value}`);
  const query = encodeURIComponent(selector.join());
  const { items } = await mustBe(200, send('GET', `${OWN}/decisions?fieldSelector=${query}`));
  return (items as { spec: { rule: string; slot?: number } }[]).some(
    ({ spec }) => spec.rule === rule && spec.slot === undefined,
  );
}

/** A whole zone stops beating and recovers: zone states, queues filled and emptied. */
async function darkZone({ shows, machines, send }: Stage): Promise<void> {
  const zone = ['edge-c-0', 'edge-c-1', 'edge-c-2'];
  await mustBe(201, send('POST', PODS, pod('in-the-dark', 'edge-c-1', { spec: tolerating(3_600) })));
  await machines('silence', ...zone);
  for (const node of zone) await shows(`${NODES}/${node}`, '"status":"Unknown"');
  await machines('beat', ...zone);
  const isBack = async (): Promise<boolean> => {
    const ready = await readyNodes({ send });
    return zone.every((node) => ready.includes(node));
  };
  await until(isBack, { withinMs: STORY_MS_MAX, what: 'the zone to be back' });
}

/** Instances are terminated and stopped; a volume is detached from the stopped one. */
async function machinesInTheCloud({ local, send, gone, shows, lacks, ec2, power }: Stage): Promise<void> {
  const stopped = 'edge-b-0';
  const { instances } = await listedCloud(local);
  const instance = instances.find(({ name }) => name === stopped)!;
  const made = await ec2('CreateVolume', {
    AvailabilityZone: instance.zone,
    'TagSpecification.1.ResourceType': 'volume',
    'TagSpecification.1.Tag.1.Key': CLUSTER_TAG,
    'TagSpecification.1.Tag.1.Value': CLUSTER_ID,
  });
  const volumeId = /<volumeId>(vol-[0-9a-f]+)</.exec(made)![1]!;
  await ec2('AttachVolume', { VolumeId: volumeId, InstanceId: instance.instanceId, Device: '/dev/xvdf' });
  const attachments = '/apis/storage.k8s.io/v1/volumeattachments';
  await mustBe(
    201,
    send('POST', attachments, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name: 'csi-data', annotations: { [VOLUME_ID_ANNOTATION]: volumeId } },
      spec: { attacher: 'ebs.csi.aws.com', nodeName: stopped, source: { persistentVolumeName: 'data' } },
    }),
  );
  const volumes = { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] };
  await mustBe(201, send('POST', PODS, pod('with-data', stopped, { spec: volumes })));
  await power('stop', stopped);
  await power('terminate', 'edge-a-0');
  await shows(`${NODES}/${stopped}`, 'node.cloudprovider.kubernetes.io/shutdown');
  await shows(`${NODES}/${stopped}`, 'node.kubernetes.io/out-of-service');
  await gone(`${PODS}/with-data`);
  await gone(`${attachments}/csi-data`);
  await gone(`${NODES}/edge-a-0`);
  await power('start', stopped);
  await lacks(`${NODES}/${stopped}`, 'node.cloudprovider.kubernetes.io/shutdown');
}

/** A Node with a zone that the cloud sets, not its kubelet. */
async function newInstance({ send, ec2, shows }: Stage): Promise<void> {
  const run = await ec2('RunInstances', { MinCount: '1', MaxCount: '1', 'Placement.AvailabilityZone': 'us-east-1d' });
  const instanceId = /<instanceId>(i-[0-9a-f]+)</.exec(run)![1]!;
  const uninitialized = { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' };
  await mustBe(
    201,
    send('POST', NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'uninitialized' },
      spec: { providerID: `aws:///us-east-1d/${instanceId}`, taints: [uninitialized] },
    }),
  );
  await shows(`${NODES}/uninitialized`, 'topology.kubernetes.io/zone');
  await mustBe(200, send('DELETE', `${NODES}/uninitialized`));
}

/** Refused credentials are logged. */
async function strangers({ local }: Stage): Promise<void> {
  await as(local, 'no-token-of-ours', async (send) => {
    await mustBe(401, send('GET', NODES));
    await mustBe(401, send('PATCH', `${LEASES}/edge-b-1`, {}, MERGE));
  });
  const { location } = await readOff(local, new URL(`${NODES}?watch=1`, local.access.url).href);
  if (location === undefined) throw new Error('a watch is not led elsewhere');
  const { status } = await readOff(local, location.replace(/&nodekeeper-ticket=.*$/, ''), 'no-token-of-ours');
  if (status !== 401) throw new Error(`a stranger's watch was answered ${status}`);
}

/** Pods that no kubelet will terminate. */
async function podGarbage({ send, gone }: Stage): Promise<void> {
  await mustBe(201, send('POST', PODS, pod('orphan', 'nowhere')));
  const finished = ['finished-1', 'finished-2', 'finished-3'];
  for (const name of finished) {
    await mustBe(201, send('POST', PODS, pod(name, 'edge-c-2')));
    await mustBe(200, send('PATCH', `${PODS}/${name}/status`, { status: { phase: 'Succeeded' } }, MERGE));
  }
  await mustBe(
    201,
    send('POST', PODS, pod('unbound', undefined, { metadata: { finalizers: ['example.com/hold'] }, spec: OF_PEOPLE })),
  );
  await mustBe(200, send('DELETE', `${PODS}/unbound`));
  await gone(`${PODS}/orphan`);
  await gone(`${PODS}/finished-1`);
  await mustBe(200, send('PATCH', `${PODS}/unbound`, { metadata: { finalizers: null } }, MERGE));
}

/** The scheduler binds pods, rejects one that is too large, and preempts. */
async function placedPods({ send, gone, shows }: Stage): Promise<void> {
  const wanting = (cpu: string, more: object = {}) => ({
    spec: {
      // Another story cordons the node.
      tolerations: [{ operator: 'Exists' }],
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: 'registry.example/main:1', resources: { requests: { cpu } } }],
      ...more,
    },
  });
  await mustBe(201, send('POST', PODS, pod('placed', undefined, wanting('10m'))));
  await shows(`${PODS}/placed`, '"nodeName"');
  await mustBe(201, send('POST', PODS, pod('too-large', undefined, wanting('1000'))));
  await shows(`${PODS}/too-large`, 'Insufficient cpu');
  await mustBe(200, send('DELETE', `${PODS}/too-large`));
  const priority = {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name: 'high' },
    value: 1_000,
  };
  await mustBe(201, send('POST', '/apis/scheduling.k8s.io/v1/priorityclasses', priority));
  // Most of the node, for both.
  const onNode = { nodeSelector: { 'kubernetes.io/hostname': 'edge-a-2' } };
  await mustBe(201, send('POST', PODS, pod('victim', undefined, wanting('3500m', onNode))));
  await shows(`${PODS}/victim`, '"nodeName"');
  const important = { ...onNode, priorityClassName: 'high' };
  await mustBe(201, send('POST', PODS, pod('important', undefined, wanting('3500m', important))));
  await gone(`${PODS}/victim`);
  await shows(`${PODS}/important`, '"nodeName"');
  // Unless the machine of one was terminated meanwhile.
  for (const name of ['placed', 'important']) await send('DELETE', `${PODS}/${name}`);
}

const SETS = '/apis/apps/v1/namespaces/default/replicasets';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';

/** A Deployment makes its pods, is scaled, passes its progress deadline, and is collected. */
async function deployedPods({ send, gone, shows }: Stage): Promise<void> {
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'deployed' },
    spec: {
      replicas: 2,
      progressDeadlineSeconds: 1,
      selector: { matchLabels: { app: 'deployed' } },
      template: {
        metadata: { labels: { app: 'deployed' } },
        spec: { ...OF_PEOPLE, containers: [{ name: 'main', image: 'registry.example/main:1' }] },
      },
    },
  };
  const selected = '?labelSelector=app%3Ddeployed';
  const count = async (path: string): Promise<number> =>
    ((await send('GET', `${path}${selected}`)).body['items'] as readonly unknown[]).length;
  const counted = (path: string, wanted: number) =>
    until(async () => (await count(path)) === wanted, { withinMs: STORY_MS_MAX, what: `${wanted} of ${path}` });
  await mustBe(201, send('POST', DEPLOYMENTS, deployment));
  await counted(PODS, 2);
  await shows(`${DEPLOYMENTS}/deployed`, 'ProgressDeadlineExceeded');
  await mustBe(200, send('PATCH', `${DEPLOYMENTS}/deployed`, { spec: { replicas: 1 } }, MERGE));
  await counted(PODS, 1);
  await mustBe(200, send('DELETE', `${DEPLOYMENTS}/deployed`));
  await gone(`${DEPLOYMENTS}/deployed`);
  await counted(SETS, 0);
  await counted(PODS, 0);
}

/** A policy refuses a ReplicaSet, with parameters, the namespace, and what the controller may do. */
async function refusedSets({ send, gone }: Stage): Promise<void> {
  const registration = '/apis/admissionregistration.k8s.io/v1';
  const mayCreate = "authorizer.group('apps').resource('replicasets').namespace('default').check('create').allowed()";
  const rule = { operations: ['CREATE'], apiGroups: ['apps'], apiVersions: ['v1'], resources: ['replicasets'] };
  const expression = `${mayCreate} && params.data.image == namespaceObject.metadata.name`;
  const maps = '/api/v1/namespaces/default/configmaps';
  await mustBe(201, send('POST', maps, { metadata: { name: 'images' }, data: { image: 'none' } }));
  await mustBe(
    201,
    send('POST', `${registration}/validatingadmissionpolicies`, {
      metadata: { name: 'sets' },
      spec: {
        paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
        matchConstraints: { objectSelector: { matchLabels: { app: 'refused' } }, resourceRules: [rule] },
        validations: [{ expression }],
      },
    }),
  );
  await mustBe(
    201,
    send('POST', `${registration}/validatingadmissionpolicybindings`, {
      metadata: { name: 'sets' },
      spec: {
        policyName: 'sets',
        paramRef: { name: 'images', parameterNotFoundAction: 'Deny' },
        validationActions: ['Deny'],
      },
    }),
  );
  const template = (image: string) => ({
    metadata: { labels: { app: 'refused' } },
    spec: { containers: [{ name: 'main', image }] },
  });
  const spec = { replicas: 0, selector: { matchLabels: { app: 'refused' } }, template: template('first') };
  await mustBe(201, send('POST', DEPLOYMENTS, { metadata: { name: 'refused' }, spec }));
  // The function may have looked for policies a moment before.
  let images = 0;
  await until(
    async () => {
      images += 1;
      await send('PATCH', `${DEPLOYMENTS}/refused`, { spec: { template: template(`image-${images}`) } }, MERGE);
      return JSON.stringify((await send('GET', `${DEPLOYMENTS}/refused`)).body).includes('ReplicaSetCreateError');
    },
    { withinMs: STORY_MS_MAX, what: 'a ReplicaSet that a policy refuses' },
  );
  await mustBe(200, send('DELETE', `${registration}/validatingadmissionpolicybindings/sets`));
  await mustBe(200, send('DELETE', `${registration}/validatingadmissionpolicies/sets`));
  await mustBe(200, send('DELETE', `${DEPLOYMENTS}/refused`));
  await gone(`${DEPLOYMENTS}/refused`);
}

/** A hub puts a copy in the place of a pod of a ReplicaSet. */
async function movedPod({ send }: Stage): Promise<void> {
  const { body: review } = await send('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {});
  const { username: hub } = (review['status'] as { userInfo: { username: string } }).userInfo;
  const names = ['site-1', 'site-2'];
  await mustBe(
    201,
    send('POST', `${OWN}/sitepolicies`, {
      metadata: { name: 'site' },
      spec: { hub, nodes: names, namespaces: ['default'] },
    }),
  );
  for (const name of names) {
    const metadata = { name, annotations: { 'nodekeeper.dev/site-hub': hub } };
    await mustBe(201, send('POST', NODES, { metadata }));
  }
  const sets = '/apis/apps/v1/namespaces/default/replicasets';
  const labels = { app: 'moved' };
  const template = {
    metadata: { labels, annotations: { 'nodekeeper.dev/offline-stop-after': '1h' } },
    // The story binds it.
    spec: { schedulerName: 'nobody', containers: [{ name: 'c', image: 'i' }] },
  };
  const spec = { replicas: 1, selector: { matchLabels: labels }, template };
  await mustBe(201, send('POST', sets, { metadata: { name: 'moved' }, spec }));
  const { name, uid } = await until(
    async () => {
      const { body } = await send('GET', `${PODS}?labelSelector=app%3Dmoved`);
      return (body['items'] as { metadata: { name: string; uid: string } }[])[0]?.metadata;
    },
    { withinMs: STORY_MS_MAX, what: 'the pod of a ReplicaSet' },
  );
  const target = { kind: 'Node', name: 'site-1' };
  await mustBe(201, send('POST', `${PODS}/${name}/binding`, { metadata: { name }, target }));
  const copy = { uid: '11111111-2222-4333-8444-555555555555', nodeName: 'site-2' };
  const move = { namespace: 'default', name, from: [uid], copy, decidedAt: '2026-01-01T00:00:00Z', why: 'a test' };
  const { body: moved } = await send('POST', `${OWN}/sitemoves`, move);
  if (moved['outcome'] !== 'done') throw new Error(`the pod was not moved: ${JSON.stringify(moved)}`);
  await mustBe(200, send('DELETE', `${sets}/moved`));
  // No agent stops it.
  await send('DELETE', `${PODS}/${name}-11111111?gracePeriodSeconds=0`);
  for (const each of names) await mustBe(200, send('DELETE', `${NODES}/${each}`));
}

/** A person deletes a Node; its machine registers again. */
async function deletedNode({ send, gone, shows }: Stage): Promise<void> {
  await mustBe(201, send('POST', PODS, pod('left-behind', 'edge-b-2', { spec: tolerating(3_600) })));
  const { body } = await send('GET', `${NODES}/edge-b-2`);
  const { uid } = body['metadata'] as { uid: string };
  await mustBe(200, send('DELETE', `${NODES}/edge-b-2`));
  await until(
    async () => {
      const answer = await send('GET', `${NODES}/edge-b-2`);
      return answer.status === 200 && (answer.body['metadata'] as { uid: string }).uid !== uid;
    },
    { withinMs: STORY_MS_MAX, what: 'the machine to register again' },
  );
  await shows(`${NODES}/edge-b-2`, '"podCIDR"');
  // Unless pod-gc was quicker.
  await send('DELETE', `${PODS}/left-behind?gracePeriodSeconds=0`);
  await gone(`${PODS}/left-behind`);
}
