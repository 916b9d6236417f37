/**
 * Every verb on every resource by every kind of user: real responses of the API, and the table in docs/access.md.
 * Writes are dry runs of what is stored already, so "refused" is 401 or 403 and nothing else. `WRITE_DOCS=1` writes the
 * table anew.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PROBE_GROUP, PROBE_USER } from '../../shared/access/probe-identity.ts';
import { sealed } from '../../shared/decisions/decision-record.ts';
import { decisionName, decisionWrite } from '../../shared/decisions/decision-store.ts';
import type { SilenceHour } from '../../shared/fleet/silences/silence-hour.ts';
import { silenceHourName, silenceHourWrite } from '../../shared/fleet/silences/silence-store.ts';
import { clusterstatuses } from '../../shared/kinds/cluster-statuses/serve.ts';
import { decisions } from '../../shared/kinds/decisions/serve.ts';
import type { ResourceDescriptor } from '../../shared/kinds/descriptor.ts';
import { resources } from '../../shared/kinds/registry.ts';
import { findStored } from '../../shared/kinds/resources.ts';
import { silencehistograms } from '../../shared/kinds/silence-histograms/serve.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { type ApiInMemory, apiInMemory, JSON_PATCH, MERGE, node } from '../support/api-in-memory.ts';
import { APPLICATION_OBJECTS } from '../support/application-objects.ts';
import { notRefused } from '../support/machine-sweep.ts';

const DOC = new URL('../../docs/access.md', import.meta.url);

/** Columns: the objects asked about are those of node n1. */
const USERS = {
  anonymous: { name: '', groups: [] },
  bootstrapper: { name: 'system:bootstrap:abc', groups: ['system:bootstrappers'] },
  probe: { name: PROBE_USER, groups: [PROBE_GROUP] },
  'node itself': { name: 'system:node:n1', groups: ['system:nodes'] },
  'another node': { name: 'system:node:n2', groups: ['system:nodes'] },
  account: { name: 'system:serviceaccount:default:bot', groups: ['system:serviceaccounts'] },
  'admin of default': { name: 'nora', groups: [] },
  viewer: { name: 'vera', groups: ['nodekeeper:viewers'] },
  admin: { name: 'ada', groups: ['nodekeeper:admins'] },
} as const;
type Who = keyof typeof USERS;
const WHO = Object.keys(USERS) as Who[];

const owner = (uid: string) => ({ apiVersion: 'v1', kind: 'Node', name: 'n1', uid, controller: true });
const container = { name: 'main', image: 'registry.example/app:1' };

/** Name of the objects of applications. The pod of n1 refers to some of them. */
const APPLICATION = 'x1';

/** One object per kind of applications. The volume is bound to the claim of the pod. */
const APPLICATIONS = Object.fromEntries(
  Object.entries(APPLICATION_OBJECTS).map(([resource, object]) => {
    const namespace = findStored(resource)?.namespaced === true ? { namespace: 'default' } : {};
    const claimRef = { namespace: 'default', name: APPLICATION };
    const spec = resource === 'persistentvolumes' ? { spec: { ...(object.spec as object), claimRef } } : {};
    return [resource, () => ({ ...object, ...spec, metadata: { name: APPLICATION, ...namespace } })];
  }),
);

/** One object a resource, all about n1. */
const OBJECTS: Readonly<Record<string, (nodeUid: string) => Record<string, unknown>>> = {
  events: () => ({
    metadata: { name: 'e1', namespace: 'default' },
    involvedObject: { kind: 'Pod', namespace: 'default', name: 'p1' },
    reason: 'Started',
    type: 'Normal',
    // The newer form, which both APIs accept.
    eventTime: '2026-01-01T00:00:00.000000Z',
    action: 'Start',
    reportingComponent: 'kubelet',
    reportingInstance: 'n1',
  }),
  namespaces: () => ({ metadata: { name: 'team' } }),
  nodes: () => ({ metadata: { name: 'n1' } }),
  pods: () => ({
    metadata: { name: 'p1', namespace: 'default' },
    spec: {
      nodeName: 'n1',
      serviceAccountName: APPLICATION,
      containers: [container],
      volumes: [
        { name: 's', secret: { secretName: APPLICATION } },
        { name: 'c', configMap: { name: APPLICATION } },
        { name: 'd', persistentVolumeClaim: { claimName: APPLICATION } },
        { name: 't', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
      ],
    },
  }),
  leases: () => ({
    metadata: { name: 'n1', namespace: 'kube-node-lease' },
    spec: { holderIdentity: 'n1', leaseDurationSeconds: 40 },
  }),
  poddisruptionbudgets: () => ({
    metadata: { name: 'b1', namespace: 'default' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'a' } } },
  }),
  priorityclasses: () => ({ metadata: { name: 'high' }, value: 1_000 }),
  volumeattachments: () => ({
    metadata: { name: 'a1' },
    spec: { attacher: 'ebs.csi.aws.com', nodeName: 'n1', source: { persistentVolumeName: 'pv1' } },
  }),
  csinodes: () => ({ metadata: { name: 'n1' }, spec: { drivers: [] } }),
  sitepolicies: () => ({
    metadata: { name: 'site' },
    spec: { hub: 'hub', nodes: ['n1'], namespaces: ['default'] },
  }),
  agentreleases: () => ({
    metadata: { name: 'agent' },
    spec: {
      version: '1.0.0',
      artifacts: [{ url: 'https://files.example/agent.mjs', sha256: '0'.repeat(64), signature: `${'A'.repeat(86)}==` }],
    },
  }),
  daemonsets: () => ({
    metadata: { name: 'd1', namespace: 'default' },
    spec: {
      selector: { matchLabels: { app: 'd' } },
      template: { metadata: { labels: { app: 'd' } }, spec: { containers: [container] } },
    },
  }),
  ...APPLICATIONS,
};

/** Decisions are only watched by what they are about. */
const watchedBy = (resource: string): string => (resource === 'decisions' ? '&fieldSelector=node%3Dn1' : '');

const groupPath = ({ group, version }: ResourceDescriptor): string =>
  group === '' ? `/api/${version}` : `/apis/${group}/${version}`;

interface Question {
  readonly what: string;
  readonly ask: (api: ApiInMemory, headers: Record<string, string>) => Promise<{ readonly code: number }>;
}

function questionsOf(descriptor: ResourceDescriptor, stored: KubeObject): Question[] {
  const { resource, verbs, subresources } = descriptor;
  const { name = '', namespace = '' } = stored.metadata;
  const all = `${groupPath(descriptor)}${descriptor.namespaced ? `/namespaces/${namespace}` : ''}/${resource}`;
  const one = `${all}/${name}`;
  const label = (verb: string, of = resource): string =>
    `${verb} ${of}${descriptor.group === '' ? '' : `.${descriptor.group}`}`;
  const { resourceVersion: _version, uid: _uid, managedFields: _fields, ...metadata } = stored.metadata;
  // The selector of a stored Job has the uid of this Job: another one is refused with it, unless it is selected by
  // hand.
  const spec = resource === 'jobs' ? { ...(stored['spec'] as object), manualSelector: true } : stored['spec'];
  const fresh = { ...stored, metadata, ...(spec === undefined ? {} : { spec }) };
  const patch = { metadata: { annotations: { note: 'changed' } } };
  const send =
    (method: string, path: string, body?: unknown, contentType?: string): Question['ask'] =>
    (api, headers) =>
      api.send(method, path, {
        headers,
        ...(body === undefined ? {} : { body }),
        ...(contentType === undefined ? {} : { contentType }),
      });
  const asks: Record<string, Question['ask']> = {
    get: send('GET', one),
    list: send('GET', all),
    watch: send('GET', `${all}?watch=1&timeoutSeconds=1&resourceVersion=0${watchedBy(resource)}`),
    create: send('POST', `${all}?dryRun=All`, fresh),
    update: send('PUT', `${one}?dryRun=All`, stored),
    patch: send('PATCH', `${one}?dryRun=All`, patch, MERGE),
    delete: send('DELETE', `${one}?dryRun=All`),
    deletecollection: send('DELETE', `${all}?dryRun=All`),
  };
  const questions: Question[] = verbs.map((verb) => ({ what: label(verb), ask: asks[verb] as Question['ask'] }));
  const ownField = { nodes: 'metadata.name', pods: 'spec.nodeName', decisions: 'node' }[resource];
  if (ownField !== undefined) {
    const query = `fieldSelector=${ownField}%3Dn1`;
    questions.push({ what: `${label('list')} of n1`, ask: send('GET', `${all}?${query}`) });
    const watch = `${all}?watch=1&timeoutSeconds=1&resourceVersion=0&${query}`;
    questions.push({ what: `${label('watch')} of n1`, ask: send('GET', watch) });
  }
  for (const sub of subresources) {
    for (const verb of sub.verbs) {
      const path = `${one}/${sub.name}?dryRun=All`;
      const posted: Record<string, unknown> = {
        token: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: [] } },
        eviction: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } },
        binding: { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { kind: 'Node', name: 'n1' } },
      };
      const ask =
        verb === 'create'
          ? send('POST', path, posted[sub.name] ?? fresh)
          : verb === 'get'
            ? send('GET', `${one}/${sub.name}`)
            : verb === 'update'
              ? send('PUT', path, sub.name === 'scale' ? { metadata: { name }, spec: { replicas: 1 } } : stored)
              : send('PATCH', path, { status: {} }, MERGE);
      questions.push({ what: label(verb, `${resource}/${sub.name}`), ask });
    }
  }
  return questions;
}

/** No client can create one through the API, so the test writes it like a controller. */
async function storedSilences(api: ApiInMemory): Promise<string> {
  const hour: SilenceHour = {
    hourStartMs: api.nowMs() - 3_600_000,
    zone: 'a',
    profile: 'default',
    slot: 1,
    observedSeconds: 3_600,
    nodeSeconds: 3_600,
    nodes: 1,
    beatIntervalSeconds: 10,
    graceSeconds: 40,
    periodSeconds: 5,
    counts: [],
    uncounted: 0,
  };
  await api.items.write(silenceHourWrite(hour));
  return silenceHourName(hour);
}

async function storedDecision(api: ApiInMemory): Promise<KubeObject> {
  const about = { kind: 'Node', name: 'n1' } as const;
  const record = sealed({
    v: 1,
    act: 'NodeKept',
    about,
    atMs: api.nowMs(),
    reason: 'for a test',
    rule: 'fact',
    inputs: {},
    outcome: {},
    policy: '0',
  });
  await api.items.write(decisionWrite(record));
  const answer = await api.send('GET', `${groupPath(decisions)}/decisions/${decisionName(record)}`);
  return answer.body;
}

async function world(): Promise<{ api: ApiInMemory; questions: Question[] }> {
  const api = apiInMemory({ users: { ...USERS } });
  const questions: Question[] = [];
  let nodeUid = '';
  let podUid = '';
  const kept = resources.filter(
    ({ servedFrom, resource, verbs }) => servedFrom === undefined && OBJECTS[resource] && verbs.includes('create'),
  );
  // What pods refer to must exist.
  const rank = ({ resource }: { readonly resource: string }) => ['nodes', 'serviceaccounts'].indexOf(resource) + 1 || 3;
  for (const descriptor of kept.toSorted((one, other) => rank(one) - rank(other))) {
    const make = OBJECTS[descriptor.resource]!;
    const object = make(nodeUid);
    const { namespace } = object['metadata'] as { namespace?: string };
    const path = `${groupPath(descriptor)}${descriptor.namespaced ? `/namespaces/${namespace}` : ''}/${descriptor.resource}`;
    const made = await api.send('POST', path, { body: object });
    if (made.code !== 201) throw new Error(`${path}: ${made.text}`);
    if (descriptor.resource === 'nodes') nodeUid = made.body.metadata.uid;
    if (descriptor.resource === 'pods') podUid = made.body.metadata.uid;
    questions.push(...questionsOf(descriptor, made.body));
  }
  questions.push(...questionsOf(decisions, await storedDecision(api)));
  questions.push(...questionsOf(silencehistograms, { metadata: { name: await storedSilences(api) } }));
  questions.push(...questionsOf(clusterstatuses, { metadata: { name: 'cluster' } }));
  const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'p1', uid: podUid };
  questions.push({
    what: 'create serviceaccounts/token (bound to its pod)',
    ask: (asked, headers) =>
      asked.send('POST', `/api/v1/namespaces/default/serviceaccounts/${APPLICATION}/token?dryRun=All`, {
        body: { spec: { audiences: [], boundObjectRef } },
        headers,
      }),
  });
  await api.send('POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings', {
    body: {
      metadata: { name: 'admins' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'nora' }],
    },
  });
  const mirror = {
    metadata: {
      name: 'static-n1',
      annotations: { 'kubernetes.io/config.mirror': 'hash', 'kubernetes.io/config.source': 'file' },
      ownerReferences: [owner(nodeUid)],
    },
    spec: { nodeName: 'n1', containers: [container] },
  };
  questions.push({
    what: 'create pods (mirror pod)',
    ask: (asked, headers) =>
      asked.send('POST', '/api/v1/namespaces/default/pods?dryRun=All', { body: mirror, headers }),
  });
  await api.send('POST', '/apis/coordination.k8s.io/v1/namespaces/default/leases', {
    body: { metadata: { name: 'n1' }, spec: { holderIdentity: 'n1' } },
  });
  for (const [verb, method, body] of [
    ['get', 'GET'],
    ['patch', 'PATCH', { spec: { leaseDurationSeconds: 1 } }],
    ['delete', 'DELETE'],
  ] as const) {
    questions.push({
      what: `${verb} leases.coordination.k8s.io (of its name in another namespace)`,
      ask: (asked, headers) =>
        asked.send(
          method,
          `/apis/coordination.k8s.io/v1/namespaces/default/leases/n1${verb === 'get' ? '' : '?dryRun=All'}`,
          {
            ...(body === undefined ? {} : { body, contentType: MERGE }),
            headers,
          },
        ),
    });
  }
  questions.push({
    what: 'patch nodes (its finalizers)',
    ask: (asked, headers) =>
      asked.send('PATCH', '/api/v1/nodes/n1?dryRun=All', {
        body: { metadata: { finalizers: ['example.com/kept'] } },
        contentType: MERGE,
        headers,
      }),
  });
  questions.push({
    what: 'patch pods/status (finalizers of its pod)',
    ask: (asked, headers) =>
      asked.send('PATCH', '/api/v1/namespaces/default/pods/p1/status?dryRun=All', {
        body: { metadata: { finalizers: ['example.com/kept'] } },
        contentType: MERGE,
        headers,
      }),
  });
  questions.push({
    what: 'patch nodes (its taints)',
    ask: (asked, headers) =>
      asked.send('PATCH', '/api/v1/nodes/n1?dryRun=All', {
        body: { spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } },
        contentType: MERGE,
        headers,
      }),
  });
  questions.push({
    what: 'patch nodes (a label of node-restriction.kubernetes.io)',
    ask: (asked, headers) =>
      asked.send('PATCH', '/api/v1/nodes/n1?dryRun=All', {
        body: { metadata: { labels: { 'node-restriction.kubernetes.io/a': 'b' } } },
        contentType: MERGE,
        headers,
      }),
  });
  return { api, questions };
}

const headersOf = (who: Who): Record<string, string> => ({
  authorization: who === 'anonymous' ? '' : `Bearer ${who}`,
});

interface Unrefused {
  readonly what: string;
  /** The lines of the sweep that it explains. */
  readonly line: RegExp;
  readonly why: string;
}

/** Each line of the sweep that is not refused has one of these. */
const UNREFUSED: readonly Unrefused[] = [
  {
    what: 'read all Services, Endpoints, RuntimeClasses and CSIDrivers',
    line: /^(GET|HEAD) (watch\/)?(csidrivers\.storage\.k8s\.io|endpoints|runtimeclasses\.node\.k8s\.io|services)( of another| of all namespaces)?: (200|400)$/,
    why: 'as upstream: kubelets list them. 400: an unknown field selector',
  },
  {
    what: 'list all EndpointSlices and NetworkPolicies',
    line: /^(GET|HEAD) (watch\/)?(endpointslices\.discovery|networkpolicies\.networking)\.k8s\.io( of all namespaces)?: (200|400)$/,
    why: 'as upstream’s role of kube-proxy: an agent routes Services, and network plugins enforce policies on each node. 400: an unknown field selector',
  },
  {
    what: 'list its own Node, and its own pods in all namespaces',
    line: /^GET (watch\/)?(nodes|pods)( of all namespaces)?: 200$/,
    why: 'a field selector restricts the list to itself; without one 403. A second, empty selector does not widen it',
  },
  {
    what: 'read all CertificateSigningRequests',
    line: /^(GET|HEAD) (watch\/)?certificatesigningrequests\.certificates\.k8s\.io( of another| of all namespaces)?: (200|400)$/,
    why: 'as upstream: a kubelet watches its own. Certificates are public. 400: an unknown field selector',
  },
  {
    what: 'create a CertificateSigningRequest',
    line: /^POST certificatesigningrequests\.certificates\.k8s\.io( of all namespaces)?: (409|422)$/,
    why: 'as upstream: a kubelet renews its certificate. The signers of kubelets are asked for its own name only; 60 per hour',
  },
  {
    what: 'create events in any namespace',
    line: /^POST events(\.events\.k8s\.io)?: (201|409|422)$/,
    why: 'as upstream: a kubelet reports about pods of every namespace. Nothing of ours reads events; they expire after an hour, and the machine’s throttle bounds them',
  },
  {
    what: 'change any event',
    line: /^(PATCH|PUT) events(\.events\.k8s\.io)? of another: (200|422)$/,
    why: 'as upstream, where an event has no owner. Decision records are the proof, and no machine can write them',
  },
  {
    what: 'send a pod that is invalid',
    line: /^POST pods: 422$/,
    why: 'the body is validated first, and the response is about the body alone. Of valid pods only mirror pods are accepted',
  },
  {
    what: 'send a volume that is invalid',
    line: /^POST persistentvolumes( of all namespaces)?: 422$/,
    why: 'the body is validated first. Of valid volumes only the one that the node was asked for is accepted',
  },
  {
    what: 'send a patch of the status of another node’s pod with wrong options',
    line: /^PATCH pods\/status of another: 422$/,
    why: 'options are validated before the pod is read; with valid ones 403, before the patch is applied',
  },
  {
    what: 'send an eviction with another kind',
    line: /^POST pods\/eviction of another: 400$/,
    why: 'the body is refused before the pod is read',
  },
];

const UNREFUSED_HEAD = [
  '## What a machine is not refused',
  '',
  'The same test sends every method to every resource and subresource, with unusual queries and paths, with the identity of',
  'node n2 about objects of n1. This table explains each response other than 401, 403, 404 and 405. Another one fails the',
  'test.',
  '',
  '| by any machine | responses | why |',
  '| --- | --- | --- |',
];

/** Beyond requests: what stays possible for a while after an identity was deleted. */
const AFTERWARDS = `
## After an identity was deleted

| still accepted | how long | why |
| --- | --- | --- |
| requests at the API | 60 s | keys are cached, and a request reads nothing |
| renewing the node's own Lease | 5 min | the same at the heartbeat, which costs one write |
| an open watch or log, also of a service account or by impersonation | 5 s | the watch function checks identity, account and roles every 3 s, and ends the watch with 401; of a log a last line says why |
| a token of a service account | 10 s | its account and its pod are cached |
| a ticket that was issued | not for a machine: the new watch ends at once | it names one watch; of other users it holds 60 s from its issue, any number of times |

A token in another spelling (spaces, padding, the other valid ECDSA signature) signs in as the same machine, expires
with the same key and \`exp\`, and allows nothing more.
`;

interface Row {
  readonly what: string;
  readonly answers: Readonly<Record<Who, boolean>>;
}

interface GroupedRow {
  readonly verbs: string[];
  readonly kinds: string[];
  readonly allowed: string;
}

/** Verbs of a kind with the same answers are one row, and kinds with the same verbs and answers. */
function grouped(rows: readonly Row[]): GroupedRow[] {
  const byKind = new Map<string, GroupedRow>();
  for (const { what, answers } of rows) {
    const verb = what.slice(0, what.indexOf(' '));
    const kind = what.slice(verb.length + 1);
    const allowed = WHO.filter((who) => answers[who]).join(', ');
    const key = `${kind}: ${allowed}`;
    const row = byKind.get(key) ?? { verbs: [], kinds: [kind], allowed };
    byKind.set(key, row);
    row.verbs.push(verb);
  }
  const byVerbs = new Map<string, GroupedRow>();
  for (const row of byKind.values()) {
    const key = `${row.verbs.toSorted().join()}: ${row.allowed}`;
    const same = byVerbs.get(key);
    if (same === undefined) byVerbs.set(key, row);
    else same.kinds.push(...row.kinds);
  }
  return [...byVerbs.values()];
}

/** Before the table: the roles, and how they are read. */
const INTRODUCTION = `# Who may do what

\`\`\`sh
kubectl auth can-i create deployments -n team-a            # may I?
kubectl auth can-i --list -n team-a                        # what may I do there?
kubectl auth can-i get secrets --as=system:serviceaccount:team-a:web
kubectl create rolebinding ada --clusterrole=edit --user=ada -n team-a
kubectl create token web -n team-a --duration=1h
\`\`\`

A request is allowed by a built-in rule, or by a role that a binding grants to its user. Roles only add permissions.

| group | built-in rules |
| --- | --- |
| \`system:masters\`, \`nodekeeper:admins\` | everything |
| \`nodekeeper:viewers\` | get, list and watch of every kind but Secrets; \`/metrics\` |
| \`system:nodes\` | its own objects and what its pods refer to (node authorizer, NodeRestriction) |
| \`system:bootstrappers\` | creating one node identity; asking for the client certificate of a kubelet |
| \`system:authenticated\` | reviews of its own permissions; discovery |

## Roles

- Roles, ClusterRoles and their bindings are evaluated as in Kubernetes, aggregated ones too. A rule with resource names
  also allows a list or a watch with \`metadata.name=NAME\` as field selector.
- On AWS an access entry assigns user name and groups to an IAM role or user. Bindings name these users and groups.
- The default roles of Kubernetes exist: \`cluster-admin\`, \`admin\`, \`edit\`, \`view\`, \`system:…\`, and
  \`nodekeeper:viewer\`. They are not stored, and cannot be changed or deleted. Labels
  \`rbac.authorization.k8s.io/aggregate-to-…\` extend \`view\`, \`edit\` and \`admin\`.
- Roles of a program that keeps a copy of the cluster, for a binding: \`system:nodekeeper:hub\` reads every kind but
  Secrets and bootstrap tokens, creates ChangeReads, SiteMoves, TokenReviews and SubjectAccessReviews.
  \`system:nodekeeper:hub-secrets\` adds Secrets. \`system:nodekeeper:site-hub\` creates the same, for a copy of what
  belongs to some nodes, which another role names ([hub](hub.md)). A ChangeRead also needs \`list\` and \`watch\` in all
  namespaces for each other resource that it names; one that is refused does not fail the others. Any machine may create
  one; it has the labels, addresses and named ports of all pods for [NetworkPolicies](services.md#networkpolicies).
- A user can only grant rules that the user holds, unless a rule allows \`escalate\` on the role or \`bind\` on the role of
  the binding.
- A binding to \`system:nodes\` adds to what nodes may read. NodeRestriction still limits what they write. Only the node
  and administrators renew a Lease in \`kube-node-lease\`, whatever roles say. A node may also send a batch of them
  (\`leasebatches\`), in which each item has the token of its own node.
- A watch of aggregated ClusterRoles shows their stored rules, a get or a list those that apply.

| read | cost |
| --- | --- |
| a request that a built-in rule allows, and every heartbeat | none |
| another request | none, if the last check of the process is younger than 5 s |
| a check for changes | 2 read units; before a refusal it is repeated after 1 s |
| roles of the cluster, or of one namespace, after a change | one read unit per 4 KB of them |

A new grant holds after at most 1 s. A grant that was removed holds for up to 5 s, also for a watch or log that is open.
Of one kind in one namespace 10,000 objects are evaluated.

## Impersonation

\`--as\`, \`--as-group\` and \`--as-uid\` need the verb \`impersonate\` on \`users\`, \`groups\`, \`serviceaccounts\`, \`uids\`
or \`userextras/KEY\`, for each part of the identity. The audit log names both users. Heartbeats refuse impersonation.

## Service accounts

\`kubectl create token\` and kubelets request a token (\`serviceaccounts/token\`). It signs in as
\`system:serviceaccount:NAMESPACE:NAME\`, in the groups \`system:serviceaccounts\` and
\`system:serviceaccounts:NAMESPACE\`.

- A token is valid for an hour, or as requested: 10 minutes to 24 hours.
- It can be bound to a Pod, a Secret or a Node. It is refused within 10 s after one of these, or the account, was
  deleted.
- It is for the API, or for the audiences of the request, which a TokenReview accepts.
- A node may request tokens for its own pods only, bound to the pod with its uid, with an audience that a volume of the
  pod names.
- A new pod runs as \`default\`, unless it names another account of its namespace. It has the image pull secrets of its
  account, and a volume \`kube-api-access-…\` with a token, the namespace and \`kube-root-ca.crt\`, unless
  \`automountServiceAccountToken: false\` is set. A pod with an unknown account is refused; a controller tries again.
- \`kube-root-ca.crt\` has the authority of the data directory, and on AWS the five roots of Amazon Trust Services, which
  also verify a certificate of ACM.
- Each process of the API signs with a key of its own (ES256), which is never stored
  ([decision 0009](decisions/0009-keys-of-our-own-processes.md)). \`/.well-known/openid-configuration\` and
  \`/openid/v1/jwks\` publish the public keys, to service accounts and administrators.

| with a token | cost |
| --- | --- |
| a request | one read unit for the account and one for what the token is bound to, at most every 10 s per token and process |
| the first request with a key, per process and hour | one read unit |
| a new pod | one read unit for its account; a controller reads it once per pass |
| issuing | 1 to 3 read units; one write per process and half day for its key |

## The table

\`test/conformance/access-matrix.test.ts\` generates this table from real responses: allowed is any response that is
not 401 or 403. The objects are those of node n1: its Node, its Lease, a pod bound to it. Anonymous users and the probe
of node-monitor may do nothing of it. \`bootstrapper\` is a machine with a bootstrap token. A RoleBinding grants the
ClusterRole \`admin\` to \`admin of default\`, in the namespace of the objects.
`.split('\n');

function rendered(rows: readonly Row[], swept: readonly string[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [
    ...INTRODUCTION,
    line(['verbs', 'kinds', 'allowed to']),
    line(['---', '---', '---']),
    ...grouped(rows).map(({ verbs, kinds, allowed }) => line([verbs.join(', '), kinds.join(', '), allowed])),
    '',
    ...UNREFUSED_HEAD,
    ...UNREFUSED.map(({ what, line: of, why }) => {
      const codes = swept.filter((each) => of.test(each)).map((each) => each.slice(each.lastIndexOf(' ') + 1));
      return line([what, [...new Set(codes)].toSorted().join(', '), why]);
    }),
    AFTERWARDS,
  ].join('\n');
}

/** Node n2 among objects of n1 that are all there. */
async function sweep(): Promise<readonly string[]> {
  const { api } = await world();
  await api.send('POST', '/api/v1/nodes', { body: node('n2') });
  const names: Record<string, string> = {};
  for (const [resource, make] of Object.entries(OBJECTS))
    names[resource] = (make('')['metadata'] as { name: string }).name;
  const { tried, lines } = await notRefused(
    api,
    { token: 'another node', nodeName: 'n2' },
    { nodeName: 'n1', nameOf: (resource) => names[resource] ?? 'n1' },
  );
  expect(tried).toBeGreaterThan(3_500);
  expect(api.faults).toEqual([]);
  return lines;
}

describe('the access matrix', () => {
  it('is what docs/access.md says', async () => {
    const { api, questions } = await world();
    const rows = [];
    for (const { what, ask } of questions) {
      const answers = {} as Record<Who, boolean>;
      for (const who of WHO) {
        const { code } = await ask(api, headersOf(who));
        expect(code, `${what} by ${who}`).toBeLessThan(500);
        // No agent runs the pod, so its log is not available to anyone.
        if (who === 'admin' && what !== 'get pods/log')
          expect([400, 404, 405, 415, 422], `${what} by ${who} is a sound request`).not.toContain(code);
        answers[who] = code !== 401 && code !== 403;
      }
      rows.push({ what, answers });
    }
    expect(api.faults).toEqual([]);
    const swept = await sweep();
    const unexplained = swept.filter((each) => UNREFUSED.filter(({ line }) => line.test(each)).length !== 1);
    expect(unexplained).toEqual([]);
    const table = rendered(rows, swept);
    if (process.env['WRITE_DOCS'] === '1') writeFileSync(DOC, table);
    expect(readFileSync(DOC, 'utf8')).toBe(table);
  });

  it('says of anonymous, bootstrapper and probe nothing but no, and lets bootstrappers read requests', async () => {
    const { api, questions } = await world();
    for (const who of ['anonymous', 'bootstrapper', 'probe'] as const) {
      for (const { what, ask } of questions) {
        const { code } = await ask(api, headersOf(who));
        const isRead = /^(get|list|watch) certificatesigningrequests\.certificates/.test(what);
        const expected = who === 'bootstrapper' && isRead ? 200 : 403;
        expect([what, code]).toEqual([what, who === 'anonymous' ? 401 : expected]);
      }
    }
  });

  it('is what can-i answers', async () => {
    const { api } = await world();
    const mayI = async (who: Who, resourceAttributes: Record<string, string>): Promise<boolean> => {
      const { body } = await api.send('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        body: { spec: { resourceAttributes } },
        headers: headersOf(who),
      });
      return body.status.allowed;
    };
    const lease = { group: 'coordination.k8s.io', resource: 'leases', namespace: 'kube-node-lease', name: 'n1' };
    expect(await mayI('node itself', { verb: 'update', ...lease })).toBe(true);
    expect(await mayI('another node', { verb: 'update', ...lease })).toBe(false);
    for (const verb of ['create', 'get', 'update', 'patch', 'delete']) {
      expect(await mayI('node itself', { verb, ...lease, namespace: 'default' }), verb).toBe(false);
    }
    expect(await mayI('node itself', { verb: 'delete', group: '', resource: 'nodes', name: 'n1' })).toBe(false);
    expect(await mayI('viewer', { verb: 'list', group: '', resource: 'pods' })).toBe(true);
    expect(await mayI('viewer', { verb: 'delete', group: '', resource: 'pods' })).toBe(false);
    expect(await mayI('admin', { verb: 'delete', group: '', resource: 'nodes', name: 'n1' })).toBe(true);
  });

  it('answers a patch of a foreign pod alike, whatever its test operations would find', async () => {
    const { api } = await world();
    const answers = [];
    for (const image of [container.image, 'another']) {
      const body = [{ op: 'test', path: '/spec/containers/0/image', value: image }];
      const path = '/api/v1/namespaces/default/pods/p1/status';
      const answer = await api.send('PATCH', path, {
        body,
        contentType: JSON_PATCH,
        headers: headersOf('another node'),
      });
      answers.push([answer.code, answer.body.message]);
    }
    expect(answers[0]?.[0]).toBe(403);
    expect(answers[1]).toEqual(answers[0]);
  });

  it('refuses with the texts of Kubernetes', async () => {
    const { api } = await world();
    const textOf = async (who: Who, method: string, path: string, body?: unknown): Promise<[number, string]> => {
      const options = { headers: headersOf(who), ...(body === undefined ? {} : { body, contentType: MERGE }) };
      const answer = await api.send(method, path, options);
      return [answer.code, answer.body.message];
    };
    expect(await textOf('anonymous', 'GET', '/api/v1/nodes')).toEqual([401, 'Unauthorized']);
    expect(await textOf('viewer', 'DELETE', '/api/v1/nodes/n1')).toEqual([
      403,
      'nodes "n1" is forbidden: User "vera" cannot delete resource "nodes" in API group "" at the cluster scope',
    ]);
    expect(await textOf('another node', 'GET', '/api/v1/namespaces/default/pods/p1')).toEqual([
      403,
      'pods "p1" is forbidden: User "system:node:n2" cannot get resource "pods" in API group "" in the namespace "default": no relationship found between node \'n2\' and this object',
    ]);
    expect(
      await textOf('node itself', 'PATCH', '/api/v1/nodes/n1', {
        spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] },
      }),
    ).toEqual([403, 'nodes "n1" is forbidden: node "n1" is not allowed to modify taints']);
  });
});
