/**
 * What users type at kubectl, as a table: one command per row, in order, over one idle local mode. The newest kubectl
 * runs all of it; every other release runs the core.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  findKubectls,
  type Kubectl,
  type KubectlPlace,
  type KubectlResult,
  makePlace,
  runKubectl,
  startKubectl,
} from '../support/kubectl.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

interface Row {
  readonly says: string;
  readonly args: readonly string[];
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** 0 by default. */
  readonly exit?: number;
  /** A text is the whole output, empty is no output; absent means any output. */
  readonly out?: string | RegExp | readonly RegExp[];
  /** Empty by default. */
  readonly err?: string | RegExp;
}

const json = (value: unknown): string => JSON.stringify(value);
/** Words, for arguments without blanks. */
const words = (text: string): string[] => text.split(' ');

function nodeOf(name: string, labels: Record<string, string> = {}, more: Record<string, unknown> = {}): string {
  return json({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels, ...more } });
}

function podOf(name: string, nodeName: string | undefined, labels: Record<string, string> = {}): string {
  const spec = { ...(nodeName === undefined ? {} : { nodeName }), containers: [{ name: 'main', image: 'pause' }] };
  return json({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default', labels }, spec });
}

const requestsOf = (cpu: string): string =>
  json({ spec: { containers: [{ name: 'main', resources: { requests: { cpu } } }] } });
const SIZED = json({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'suite-sized', namespace: 'default' } },
  spec: { containers: [{ name: 'main', image: 'pause', resources: { requests: { cpu: '100m' } } }] },
});

function core(node: string): Row[] {
  const selector = `suite=${node}`;
  return [
    {
      says: 'creates a node from a file',
      args: words('create -f -'),
      stdin: nodeOf(node, { suite: node }),
      out: `node/${node} created\n`,
    },
    {
      says: 'lists by label, as a table',
      args: ['get', 'nodes', '-l', selector],
      out: new RegExp(`^NAME +STATUS +ROLES +AGE +VERSION\\s*\\n${node} +Unknown +<none> +\\d+s *\\n$`),
    },
    { says: 'prints names', args: ['get', 'nodes', '-l', selector, '-o', 'name'], out: `node/${node}\n` },
    { says: 'labels', args: ['label', 'node', node, 'rack=r1'], out: `node/${node} labeled\n` },
    {
      says: 'does not overwrite a label unasked',
      args: ['label', 'node', node, 'rack=r2'],
      exit: 1,
      err: "error: 'rack' already has a value (r1), and --overwrite is false\n",
    },
    { says: 'taints', args: ['taint', 'node', node, 'own=1:NoSchedule'], out: `node/${node} tainted\n` },
    {
      says: 'does not taint twice',
      args: ['taint', 'node', node, 'own=1:NoSchedule'],
      exit: 1,
      err: /^error: node \S+ already has own taint\(s\) with same effect\(s\) and --overwrite is false\n$/,
    },
    { says: 'cordons', args: ['cordon', node], out: `node/${node} cordoned\n` },
    {
      says: 'shows a cordoned node as such',
      args: ['get', 'node', node],
      out: /Unknown,SchedulingDisabled/,
    },
    { says: 'uncordons', args: ['uncordon', node], out: `node/${node} uncordoned\n` },
    {
      says: 'reports Ready through the status subresource',
      args: [
        'patch',
        'node',
        node,
        '--subresource=status',
        '-p',
        json({ status: { conditions: [{ type: 'Ready', status: 'True', reason: 'ByHand' }] } }),
      ],
      out: `node/${node} patched\n`,
    },
    {
      says: 'waits for a condition',
      args: ['wait', '--for=condition=Ready', `node/${node}`, '--timeout=10s'],
      out: `node/${node} condition met\n`,
    },
    {
      says: 'describes',
      args: ['describe', 'node', node],
      out: [/^(Taints:)? +own=1:NoSchedule$/m, /^ {2}Ready +True /m],
    },
    { says: 'deletes', args: ['delete', 'node', node], out: `node "${node}" deleted\n` },
    {
      says: 'does not find what was deleted',
      args: ['get', 'node', node],
      exit: 1,
      out: '',
      err: `Error from server (NotFound): nodes "${node}" not found\n`,
    },
  ];
}

const applied = (rack: string): string => nodeOf('suite-applied', { rack });
const serverSide = (rack: string): string => nodeOf('suite-ssa', { rack });
const CONFLICT = /^error: Apply failed with 1 conflict: conflict with "one": \.metadata\.labels\.rack\n/;

const READING: readonly Row[] = [
  {
    says: 'creates a, b and c',
    args: words('create -f -'),
    stdin: `${['a', 'b', 'c'].map((at, index) => nodeOf(`suite-${at}`, { set: 'abc', at, rank: String(9 - index) })).join('\n---\n')}`,
    out: 'node/suite-a created\nnode/suite-b created\nnode/suite-c created\n',
  },
  {
    says: 'wide columns',
    args: words('get nodes -o wide'),
    out: /INTERNAL-IP +EXTERNAL-IP +OS-IMAGE +KERNEL-VERSION +CONTAINER-RUNTIME/,
  },
  {
    says: 'YAML',
    args: words('get node suite-a -o yaml'),
    out: [/^apiVersion: v1$/m, /^kind: Node$/m, /^ {2}name: suite-a$/m, /^ {2}uid: [0-9a-f-]{36}$/m],
  },
  { says: 'JSON', args: words('get node suite-a -o json'), out: [/"kind": "Node"/, /"name": "suite-a"/] },
  {
    says: 'JSONPath over a list',
    args: ['get', 'nodes', '-l', 'set=abc', '-o', 'jsonpath={.items[*].metadata.name}'],
    out: 'suite-a suite-b suite-c',
  },
  { says: 'JSONPath of one', args: ['get', 'node', 'suite-b', '-o', 'jsonpath={.metadata.labels.at}'], out: 'b' },
  {
    says: 'custom columns',
    args: words('get nodes -l set=abc -o custom-columns=N:.metadata.name,AT:.metadata.labels.at'),
    out: /^N +AT\nsuite-a +a\nsuite-b +b\nsuite-c +c\n$/,
  },
  {
    says: 'label columns',
    args: words('get nodes -l set=abc -L at --no-headers'),
    out: /^suite-a +Unknown .* a\nsuite-b .* b\nsuite-c .* c\n$/,
  },
  { says: 'show labels', args: words('get node suite-a --show-labels'), out: /at=a,.*rank=9,set=abc/ },
  {
    says: 'set selector',
    args: ['get', 'nodes', '-l', 'at in (a,c)', '-o', 'name'],
    out: 'node/suite-a\nnode/suite-c\n',
  },
  {
    says: 'unequal and absent labels',
    args: ['get', 'nodes', '-l', 'set=abc,at!=a,!gpu', '-o', 'name'],
    out: 'node/suite-b\nnode/suite-c\n',
  },
  {
    says: 'field selector by name',
    args: words('get nodes --field-selector metadata.name=suite-c -o name'),
    out: 'node/suite-c\n',
  },
  {
    says: 'field selector on a field that is not selectable',
    args: words('get nodes --field-selector status.phase=x'),
    exit: 1,
    err: /field label not supported: status\.phase/,
  },
  {
    says: 'sorted by a label',
    args: words('get nodes -l set=abc --sort-by=.metadata.labels.rank -o name'),
    out: 'node/suite-c\nnode/suite-b\nnode/suite-a\n',
  },
  {
    says: 'in chunks of two',
    args: words('get nodes -l set=abc --chunk-size=2 -o name'),
    out: 'node/suite-a\nnode/suite-b\nnode/suite-c\n',
  },
  { says: 'two by name', args: words('get nodes suite-a suite-c -o name'), out: 'node/suite-a\nnode/suite-c\n' },
  {
    says: 'one there and one not',
    args: words('get nodes suite-a suite-x -o name'),
    exit: 1,
    out: 'node/suite-a\n',
    err: 'Error from server (NotFound): nodes "suite-x" not found\n',
  },
  { says: 'no error for one ignored', args: words('get node suite-x --ignore-not-found'), out: '' },
  {
    says: 'unknown type',
    args: words('get widgets'),
    exit: 1,
    out: '',
    err: 'error: the server doesn\'t have a resource type "widgets"\n',
  },
  {
    says: 'nothing in a namespace there is not',
    args: words('get pods -n nowhere'),
    out: '',
    err: 'No resources found in nowhere namespace.\n',
  },
  {
    says: 'short names and several kinds',
    args: words('get no/suite-a ns/default -o name'),
    out: 'node/suite-a\nnamespace/default\n',
  },
  {
    says: 'malformed selector',
    args: ['get', 'nodes', '-l', 'a=b=c'],
    exit: 1,
    err: /unable to parse requirement|found '='/,
  },
];

const METADATA: readonly Row[] = [
  { says: 'label with overwrite', args: words('label node suite-a at=z --overwrite'), out: 'node/suite-a labeled\n' },
  { says: 'label removed', args: words('label node suite-a at-'), out: 'node/suite-a unlabeled\n' },
  {
    says: 'label by selector',
    args: words('label nodes -l set=abc batch=1'),
    out: 'node/suite-a labeled\nnode/suite-b labeled\nnode/suite-c labeled\n',
  },
  {
    says: 'label kubectl itself refuses',
    args: ['label', 'node', 'suite-a', 'at=bad value'],
    exit: 1,
    err: /^error: invalid label value: /,
  },
  {
    says: 'label the server refuses',
    args: ['patch', 'node', 'suite-a', '-p', json({ metadata: { labels: { at: 'bad value' } } })],
    exit: 1,
    err: /^The Node "suite-a" is invalid: metadata\.labels: Invalid value: "bad value"/,
  },
  {
    says: 'label on what is not there',
    args: words('label node suite-x at=z'),
    exit: 1,
    err: 'Error from server (NotFound): nodes "suite-x" not found\n',
  },
  { says: 'annotate', args: ['annotate', 'node', 'suite-a', 'note=one two'], out: 'node/suite-a annotated\n' },
  {
    says: 'annotate again',
    args: words('annotate node suite-a note=three'),
    exit: 1,
    err: /^error: --overwrite is false but found the following declared annotation\(s\): 'note'/,
  },
  {
    says: 'annotate with overwrite',
    args: words('annotate node suite-a note=three --overwrite'),
    out: 'node/suite-a annotated\n',
  },
  { says: 'annotation removed', args: words('annotate node suite-a note-'), out: 'node/suite-a annotated\n' },
  { says: 'taint', args: words('taint node suite-a own=1:NoSchedule'), out: 'node/suite-a tainted\n' },
  {
    says: 'taint with overwrite',
    args: words('taint node suite-a own=2:NoSchedule --overwrite'),
    out: 'node/suite-a modified\n',
  },
  { says: 'taint removed', args: words('taint node suite-a own-'), out: 'node/suite-a untainted\n' },
  {
    says: 'taint removed that is not there',
    args: words('taint node suite-a own-'),
    exit: 1,
    err: 'error: taint "own" not found\n',
  },
  {
    says: 'taint with an effect there is not',
    args: words('taint node suite-a own=1:Never'),
    exit: 1,
    err: /invalid taint effect: Never/,
  },
  { says: 'cordon', args: words('cordon suite-a'), out: 'node/suite-a cordoned\n' },
  { says: 'cordon again', args: words('cordon suite-a'), out: 'node/suite-a already cordoned\n' },
  {
    says: 'wait for a field',
    args: words('wait --for=jsonpath={.spec.unschedulable}=true node/suite-a --timeout=10s'),
    out: 'node/suite-a condition met\n',
  },
  { says: 'uncordon', args: words('uncordon suite-a'), out: 'node/suite-a uncordoned\n' },
  { says: 'uncordon again', args: words('uncordon suite-a'), out: 'node/suite-a already uncordoned\n' },
];

const PATCHES: readonly Row[] = [
  {
    says: 'strategic',
    args: ['patch', 'node', 'suite-b', '-p', json({ metadata: { labels: { p: '1' } } })],
    out: 'node/suite-b patched\n',
  },
  {
    says: 'strategic, which changes nothing',
    args: ['patch', 'node', 'suite-b', '-p', json({ metadata: { labels: { p: '1' } } })],
    out: 'node/suite-b patched (no change)\n',
  },
  {
    says: 'JSON',
    args: [
      'patch',
      'node',
      'suite-b',
      '--type=json',
      '-p',
      json([{ op: 'replace', path: '/metadata/labels/p', value: '2' }]),
    ],
    out: 'node/suite-b patched\n',
  },
  {
    says: 'JSON with a test that fails',
    args: [
      'patch',
      'node',
      'suite-b',
      '--type=json',
      '-p',
      json([{ op: 'test', path: '/metadata/labels/p', value: '9' }]),
    ],
    exit: 1,
    err: /^The request is invalid: the server rejected our request due to an error in our request/,
  },
  {
    says: 'merge',
    args: ['patch', 'node', 'suite-b', '--type=merge', '-p', json({ metadata: { labels: { p: null } } })],
    out: 'node/suite-b patched\n',
  },
  { says: 'left nothing behind', args: ['get', 'node', 'suite-b', '-o', 'jsonpath={.metadata.labels.p}'], out: '' },
  {
    says: 'status',
    args: [
      'patch',
      'node',
      'suite-b',
      '--subresource=status',
      '-p',
      json({ status: { conditions: [{ type: 'Ready', status: 'True', reason: 'ByHand' }] } }),
    ],
    out: 'node/suite-b patched\n',
  },
  {
    says: 'status merges conditions by type',
    args: [
      'patch',
      'node',
      'suite-b',
      '--subresource=status',
      '-p',
      json({ status: { conditions: [{ type: 'DiskPressure', status: 'False' }] } }),
    ],
    out: 'node/suite-b patched\n',
  },
  {
    says: 'both conditions are there',
    args: ['get', 'node', 'suite-b', '-o', 'jsonpath={.status.conditions[*].type}'],
    out: /^(Ready DiskPressure|DiskPressure Ready)$/,
  },
  {
    says: 'the main resource leaves the status alone',
    args: ['patch', 'node', 'suite-b', '-p', json({ status: { conditions: [{ type: 'Ready', status: 'False' }] } })],
    out: 'node/suite-b patched (no change)\n',
  },
  {
    says: 'wait for Ready',
    args: words('wait --for=condition=Ready node/suite-b --timeout=10s'),
    out: 'node/suite-b condition met\n',
  },
  {
    says: 'wait in vain',
    args: words('wait --for=condition=Ready node/suite-c --timeout=1s'),
    exit: 1,
    err: 'error: timed out waiting for the condition on nodes/suite-c\n',
  },
  {
    says: 'edit',
    args: words('edit node suite-b'),
    env: { KUBE_EDITOR: 'sed -i s/rank:.*/rank:\\ r80/' },
    out: 'node/suite-b edited\n',
  },
  { says: 'edit was kept', args: ['get', 'node', 'suite-b', '-o', 'jsonpath={.metadata.labels.rank}'], out: 'r80' },
  {
    says: 'edit without a change',
    args: words('edit node suite-b'),
    env: { KUBE_EDITOR: 'true' },
    err: 'Edit cancelled, no changes made.\n',
    out: '',
  },
  { says: 'a pod with requests', args: words('create -f -'), stdin: SIZED, out: 'pod/suite-sized created\n' },
  {
    says: 'patch of the resources of a pod',
    args: ['patch', 'pod', 'suite-sized', '--subresource=resize', '-p', requestsOf('200m')],
    out: 'pod/suite-sized patched\n',
  },
  {
    says: 'edit of the resources of a pod',
    args: words('edit pod suite-sized --subresource=resize'),
    env: { KUBE_EDITOR: 'sed -i s/200m/300m/' },
    out: 'pod/suite-sized edited\n',
  },
  {
    says: 'the pod itself leaves them alone',
    args: ['patch', 'pod', 'suite-sized', '-p', requestsOf('400m')],
    exit: 1,
    err: /^The Pod "suite-sized" is invalid: spec: Forbidden: pod updates may not change fields other than/,
  },
  {
    says: 'the resources of the last resize',
    args: ['get', 'pod', 'suite-sized', '-o', 'jsonpath={.metadata.generation} {.spec.containers[0].resources}'],
    out: '3 {"requests":{"cpu":"300m"}}',
  },
];

const APPLIES: readonly Row[] = [
  {
    says: 'diff of what is not there',
    args: words('diff -f -'),
    stdin: applied('r1'),
    exit: 1,
    out: /^\+ {2}name: suite-applied$/m,
  },
  {
    says: 'apply, dry',
    args: words('apply --dry-run=server -f -'),
    stdin: applied('r1'),
    out: 'node/suite-applied created (server dry run)\n',
  },
  { says: 'dry run left nothing', args: words('get node suite-applied'), exit: 1, err: /NotFound/ },
  { says: 'apply creates', args: words('apply -f -'), stdin: applied('r1'), out: 'node/suite-applied created\n' },
  { says: 'apply again', args: words('apply -f -'), stdin: applied('r1'), out: 'node/suite-applied unchanged\n' },
  { says: 'apply a change', args: words('apply -f -'), stdin: applied('r2'), out: 'node/suite-applied configured\n' },
  { says: 'diff of the same', args: words('diff -f -'), stdin: applied('r2'), out: '' },
  {
    says: 'diff of another',
    args: words('diff -f -'),
    stdin: applied('r3'),
    exit: 1,
    out: [/^- {4}rack: r2$/m, /^\+ {4}rack: r3$/m],
  },
  {
    says: 'server-side apply',
    args: words('apply --server-side --field-manager=one -f -'),
    stdin: serverSide('r1'),
    out: 'node/suite-ssa serverside-applied\n',
  },
  {
    says: 'server-side apply again',
    args: words('apply --server-side --field-manager=one -f -'),
    stdin: serverSide('r1'),
    out: 'node/suite-ssa serverside-applied\n',
  },
  {
    says: 'another manager, same value',
    args: words('apply --server-side --field-manager=two -f -'),
    stdin: serverSide('r1'),
    out: 'node/suite-ssa serverside-applied\n',
  },
  {
    says: 'another manager releases it',
    args: words('apply --server-side --field-manager=two -f -'),
    stdin: nodeOf('suite-ssa'),
    out: 'node/suite-ssa serverside-applied\n',
  },
  {
    says: 'another manager, other value',
    args: words('apply --server-side --field-manager=two -f -'),
    stdin: serverSide('r2'),
    exit: 1,
    err: CONFLICT,
  },
  {
    says: 'another manager by force',
    args: words('apply --server-side --force-conflicts --field-manager=two -f -'),
    stdin: serverSide('r2'),
    out: 'node/suite-ssa serverside-applied\n',
  },
  {
    says: 'force assigned the value',
    args: ['get', 'node', 'suite-ssa', '-o', 'jsonpath={.metadata.labels.rack}'],
    out: 'r2',
  },
  {
    says: 'replace',
    args: words('replace -f -'),
    stdin: nodeOf('suite-applied', { rack: 'r7' }),
    out: 'node/suite-applied replaced\n',
  },
  {
    says: 'replace with a stale version',
    args: words('replace -f -'),
    stdin: nodeOf('suite-applied', { rack: 'r8' }, { resourceVersion: '1' }),
    exit: 1,
    err: /^Error from server \(Conflict\): .*Operation cannot be fulfilled on nodes "suite-applied": the object has been modified/,
  },
  {
    says: 'replace what is not there',
    args: words('replace -f -'),
    stdin: nodeOf('suite-x'),
    exit: 1,
    err: /\(NotFound\)/,
  },
  {
    says: 'create what is there',
    args: words('create -f -'),
    stdin: applied('r1'),
    exit: 1,
    err: 'Error from server (AlreadyExists): error when creating "STDIN": nodes "suite-applied" already exists\n',
  },
  {
    says: 'create, dry',
    args: words('create --dry-run=server -f -'),
    stdin: nodeOf('suite-dry'),
    out: 'node/suite-dry created (server dry run)\n',
  },
  {
    says: 'create with a field there is not',
    args: words('create -f -'),
    stdin: json({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'suite-odd' }, spec: { colour: 'red' } }),
    exit: 1,
    err: /unknown field "spec\.colour"/,
  },
  {
    says: 'create with a bad name',
    args: words('create -f -'),
    stdin: nodeOf('Suite_Bad'),
    exit: 1,
    err: /^The Node "Suite_Bad" is invalid: metadata\.name: Invalid value: "Suite_Bad"/,
  },
];

const PODS: readonly Row[] = [
  { says: 'namespace', args: words('create ns suite-team'), out: 'namespace/suite-team created\n' },
  {
    says: 'namespace again',
    args: words('create ns suite-team'),
    exit: 1,
    err: 'Error from server (AlreadyExists): namespaces "suite-team" already exists\n',
  },
  {
    says: 'pod in a namespace there is not',
    args: words('create -n suite-none -f -'),
    stdin: json({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'main', image: 'pause' }] },
    }),
    exit: 1,
    err: /namespaces "suite-none" not found/,
  },
  {
    says: 'pods',
    args: words('create -f -'),
    stdin: [
      podOf('suite-p1', 'suite-b', { app: 'p' }),
      podOf('suite-p2', 'suite-b', { app: 'p' }),
      podOf('suite-p3', undefined),
    ].join('\n---\n'),
    out: 'pod/suite-p1 created\npod/suite-p2 created\npod/suite-p3 created\n',
  },
  {
    says: 'pods as a table',
    args: words('get pods'),
    out: /^NAME +READY +STATUS +RESTARTS +AGE\nsuite-p1 +0\/1 +Pending +0 +\d+s\n/,
  },
  { says: 'pods, wide', args: words('get pods -o wide -l app=p'), out: /suite-p1 .* suite-b +<none> +<none>/ },
  {
    says: 'pods of a node',
    args: words('get pods -A --field-selector spec.nodeName=suite-b -o name'),
    out: 'pod/suite-p1\npod/suite-p2\n',
  },
  {
    says: 'describe pod',
    args: words('describe pod suite-p1'),
    out: [/^Name: +suite-p1$/m, /^Node: +suite-b/m, /node\.kubernetes\.io\/unreachable:NoExecute op=Exists for 300s/],
  },
  {
    says: 'describe the node of pods',
    args: words('describe node suite-b'),
    out: [/Non-terminated Pods: +\(2 in total\)/, /default +suite-p1 /],
  },
  {
    says: 'node of a pod is immutable',
    args: ['patch', 'pod', 'suite-p1', '-p', json({ spec: { nodeName: 'suite-a' } })],
    exit: 1,
    err: /^The Pod "suite-p1" is invalid: spec/,
  },
  {
    says: 'pod with grace waits for its kubelet',
    args: words('delete pod suite-p1 --grace-period=20 --wait=false'),
    out: /^pod "suite-p1" deleted/,
  },
  { says: 'pod is going', args: words('get pod suite-p1'), out: /Terminating/ },
  {
    says: 'pod by force',
    args: words('delete pod suite-p1 --force --grace-period=0'),
    out: /^pod "suite-p1" force deleted/,
    err: /^Warning: Immediate deletion/,
  },
  { says: 'pod without a node is deleted at once', args: words('delete pod suite-p3'), out: /^pod "suite-p3" deleted/ },
  {
    says: 'pod that is not there',
    args: words('delete pod suite-p3'),
    exit: 1,
    err: 'Error from server (NotFound): pods "suite-p3" not found\n',
  },
  { says: 'wait for a deleted object', args: words('wait --for=delete pod/suite-p3 --timeout=5s'), out: '' },
  {
    // The function workloads empties it, which does not run here.
    says: 'namespace is deleted',
    args: words('delete ns suite-team --wait=false'),
    out: 'namespace "suite-team" deleted\n',
  },
  { says: 'namespace waits for its end', args: words('get ns suite-team'), out: /suite-team +Terminating/ },
];

const now = '2026-01-01T00:00:00Z';
const LEASES_AND_EVENTS: readonly Row[] = [
  {
    says: 'lease',
    args: words('create -f -'),
    stdin: json({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'suite-a', namespace: 'kube-node-lease' },
      spec: { holderIdentity: 'suite-a', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00.000000Z' },
    }),
    out: 'lease.coordination.k8s.io/suite-a created\n',
  },
  {
    says: 'leases',
    args: words('get leases -n kube-node-lease'),
    out: /^NAME +HOLDER +AGE\nsuite-a +suite-a +\d+s\n$/,
  },
  {
    says: 'describe lease',
    args: words('describe lease suite-a -n kube-node-lease'),
    out: [/Holder Identity: +suite-a/, /Lease Duration Seconds: +40/],
  },
  {
    says: 'lease in the description of its node',
    args: words('describe node suite-a'),
    out: /^ {2}HolderIdentity: +suite-a$/m,
  },
  {
    says: 'event',
    args: words('create -f -'),
    stdin: json({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'suite-event', namespace: 'default' },
      involvedObject: { apiVersion: 'v1', kind: 'Node', name: 'suite-a' },
      reason: 'SuiteReason',
      message: 'written by hand',
      type: 'Normal',
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component: 'suite' },
    }),
    out: 'event/suite-event created\n',
  },
  {
    says: 'get events',
    args: words('get events'),
    out: [/^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n/, /Normal +SuiteReason +node\/suite-a +written by hand/],
  },
  {
    says: 'get events of one object',
    args: words('get events --field-selector involvedObject.name=suite-a -o name'),
    out: 'event/suite-event\n',
  },
  { says: 'events', args: words('events'), out: /Normal +SuiteReason +Node\/suite-a +written by hand/ },
  { says: 'events for one object', args: words('events --for node/suite-a'), out: /SuiteReason/ },
  { says: 'events of a type', args: words('events --types=Warning'), out: '', err: /No events found/ },
];

const DISCOVERY: readonly Row[] = [
  { says: 'explain node', args: words('explain node'), out: [/^KIND: +Node$/m, /^ +spec\s+<NodeSpec>/m] },
  { says: 'explain pod.spec', args: words('explain pod.spec'), out: /^ +nodeName\s+<string>/m },
  { says: 'explain lease', args: words('explain lease'), out: /^GROUP: +coordination\.k8s\.io$/m },
  {
    says: 'explain a field there is not',
    args: words('explain node.colour'),
    exit: 1,
    err: /field "colour" does not exist/,
  },
  { says: 'may I', args: words('auth can-i delete pods'), out: 'yes\n' },
  { says: 'who am I', args: words('auth whoami'), out: /^Username +admin$/m },
  { says: 'raw', args: words('get --raw /readyz'), out: 'ok' },
  {
    says: 'raw that is not there',
    args: words('get --raw /api/v1/nodes/suite-x'),
    exit: 1,
    err: 'Error from server (NotFound): nodes "suite-x" not found\n',
  },
  { says: 'api-resources', args: words('api-resources -o name'), out: /^nodes$/m },
  {
    says: 'api-resources of a group',
    args: words('api-resources --api-group=policy --no-headers'),
    out: /^poddisruptionbudgets +pdb +policy\/v1 +true +PodDisruptionBudget\n$/,
  },
  { says: 'api-versions', args: words('api-versions'), out: [/^coordination\.k8s\.io\/v1$/m, /^v1$/m] },
  {
    says: 'version',
    args: words('version'),
    out: /^Server Version: v1\.36\./m,
    err: /^(Warning: version difference between client .*\n)?$/,
  },
  { says: 'no logs', args: words('logs suite-p2'), exit: 1, out: '', err: /^[Ee]rror/ },
];

const ENDS: readonly Row[] = [
  {
    says: 'by selector',
    args: words('delete nodes -l set=abc'),
    out: 'node "suite-a" deleted\nnode "suite-b" deleted\nnode "suite-c" deleted\n',
  },
  {
    says: 'its lease went along',
    args: words('get lease suite-a -n kube-node-lease'),
    exit: 1,
    err: /\(NotFound\): leases\.coordination\.k8s\.io "suite-a" not found/,
  },
  {
    says: 'two by name',
    args: words('delete node suite-applied suite-ssa'),
    out: 'node "suite-applied" deleted\nnode "suite-ssa" deleted\n',
  },
  {
    says: 'one that is not there',
    args: words('delete node suite-applied'),
    exit: 1,
    err: 'Error from server (NotFound): nodes "suite-applied" not found\n',
  },
  { says: 'one that is not there, ignored', args: words('delete node suite-applied --ignore-not-found'), out: '' },
  {
    says: 'by file',
    args: words('delete -f - --force --grace-period=0'),
    stdin: podOf('suite-p2', undefined),
    out: /^pod "suite-p2" force deleted/,
    err: /^Warning/,
  },
  { says: 'nothing left', args: words('get nodes'), out: '', err: 'No resources found\n' },
];

const TABLES: Readonly<Record<string, readonly Row[]>> = {
  'reads with': READING,
  'writes metadata, taints and cordons with': METADATA,
  'patches and edits with': PATCHES,
  'applies, diffs and replaces with': APPLIES,
  'manages pods and namespaces with': PODS,
  'sees leases and events with': LEASES_AND_EVENTS,
  'discovers with': DISCOVERY,
};

const all = findKubectls();
const newest: Kubectl | undefined = [...all]
  .reverse()
  .reduce<Kubectl | undefined>(
    (best, each) => (best === undefined || each.minor > best.minor ? each : best),
    undefined,
  );

describe.skipIf(newest === undefined)('kubectl against a still local mode', { timeout: 90_000 }, () => {
  let local: LocalForTest;

  beforeAll(async () => {
    local = await startLocalForTest({ nodes: 0, controllers: false });
  }, 90_000);
  afterAll(() => local?.stop());

  function runs(kubectl: Kubectl, rows: readonly Row[], place: () => KubectlPlace): void {
    it.each(rows.map((row) => [row.says, row] as const))('%s', async (_says, row) => {
      check(row, await run(kubectl, row, place()));
    });
  }

  const run = (kubectl: Kubectl, row: Pick<Row, 'args' | 'stdin' | 'env'>, place: KubectlPlace) =>
    runKubectl(kubectl, row.args, {
      kubeconfig: local.kubeconfig,
      place,
      ...(row.stdin === undefined ? {} : { stdin: row.stdin }),
      ...(row.env === undefined ? {} : { env: row.env }),
      timeoutMs: 60_000,
    });

  describe.each(all.map((kubectl) => ({ ...kubectl })))('the core with $name', (kubectl) => {
    let place: KubectlPlace;
    beforeAll(() => {
      place = makePlace();
    });
    afterAll(() => place.remove());
    runs(kubectl, core(`core-${kubectl.minor}-${kubectl.name.replace(/\W/g, '-')}`), () => place);
  });

  describe(`everything with ${newest?.name}`, () => {
    let place: KubectlPlace;
    beforeAll(() => {
      place = makePlace();
    });
    afterAll(() => place.remove());

    for (const [title, rows] of Object.entries(TABLES)) describe(title, () => runs(newest!, rows, () => place));

    // By selector: when a node is watched by name, kubectl swallows the first event.
    it('shows changes of a node, one of three within two seconds, on one watch', async () => {
      const watch = startKubectl(newest!, words('get nodes -l at=c -w --no-headers -L seen'), {
        kubeconfig: local.kubeconfig,
        place,
      });
      try {
        await until(() => watch.lines() >= 1, { withinMs: 30_000, what: 'the node itself' });
        const delaysMs: number[] = [];
        for (const seen of ['first', 'second', 'third']) {
          const sentMs = performance.now();
          const answer = await local.client.send({
            method: 'PATCH',
            path: '/api/v1/nodes/suite-c',
            contentType: 'application/merge-patch+json',
            body: { metadata: { labels: { seen } } },
          });
          expect(answer).toMatchObject({ status: 200 });
          await until(() => watch.stdout().includes(` ${seen}`), { withinMs: 10_000, everyMs: 20, what: seen });
          delaysMs.push(performance.now() - sentMs);
        }
        // A busy machine delays some of them.
        expect(Math.min(...delaysMs)).toBeLessThan(2_000);
        expect(watch.child.exitCode).toBeNull();
      } finally {
        watch.interrupt();
        await watch.ended;
      }
    });

    it('waits until a node is deleted', async () => {
      await run(newest!, { args: words('create -f -'), stdin: nodeOf('suite-brief') }, place);
      const waiting = startKubectl(newest!, words('wait --for=delete node/suite-brief --timeout=15s'), {
        kubeconfig: local.kubeconfig,
        place,
      });
      await run(newest!, { args: words('delete node suite-brief') }, place);
      expect(await waiting.ended).toMatchObject({ exitCode: 0, stderr: '' });
    });

    describe('deletes with', () => runs(newest!, ENDS, () => place));
  });
});

function check(row: Row, result: KubectlResult): void {
  const { exit = 0, out, err = '' } = row;
  expect(result).toMatchObject({ exitCode: exit, timedOut: false });
  for (const pattern of [out ?? []].flat()) expect(result.stdout).toEqual(textLike(pattern));
  // Known beforehand to fail: anything said will do, but something must be.
  if (exit !== 0 && row.err === undefined) return;
  expect(result.stderr).toEqual(textLike(err));
}

const textLike = (pattern: string | RegExp): unknown =>
  typeof pattern === 'string' ? pattern : expect.stringMatching(pattern);
