/**
 * Upstream's plugins as a program. It is compiled inside the source tree of Kubernetes 1.20.2, by Go 1.15 to 1.19.
 * Files are added and changed by Go's overlay: the tree itself stays as it is.
 *
 * Our rules follow 1.36. Where a formula changed between the two, the later one is patched in. Everything else is
 * compared exactly.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { randomCluster } from './clusters.ts';

/** What upstream decides about one pending pod. */
export interface PeerAnswer {
  /** By node name. */
  readonly rejections: Readonly<
    Record<string, { readonly reasons: readonly string[]; readonly isResolvable: boolean }>
  >;
  /** 0 to 100, without weights: by plugin, then by node name. */
  readonly scores: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly candidates: readonly PeerCandidate[];
  /** The node of the candidate that upstream chooses; '' without one. */
  readonly pick: string;
}

export interface PeerCandidate {
  readonly nodeName: string;
  /** `namespace/name`. */
  readonly victims: readonly string[];
  readonly violations: number;
}

/** A line of a file of recorded answers: those to the cluster of this seed, one per pending pod. */
export interface RecordedAnswers {
  readonly seed: number;
  readonly answers: readonly PeerAnswer[];
}

interface Patch {
  /** Below pkg/scheduler/framework/plugins. */
  readonly file: string;
  readonly change: string;
  readonly edits: readonly (readonly [from: string, to: string])[];
}

const IMPORT_MATH = ['import (', 'import (\n\t"math"'] as const;
const offered = (amount: string): string => `if nodeInfo.Allocatable.${amount} < podRequest.${amount}+`;
const REQUESTED_TWICE = ['MilliCPU', 'Memory', 'EphemeralStorage'];

const PATCHES: readonly Patch[] = [
  {
    file: 'noderesources/fit.go',
    change: 'a request of 0 is not compared; a request beyond allocatable is not resolvable',
    edits: [
      ...REQUESTED_TWICE.map(
        (amount) => [offered(amount), offered(amount).replace('if ', `if podRequest.${amount} > 0 && `)] as const,
      ),
      [
        'return framework.NewStatus(framework.Unschedulable, failureReasons...)',
        `code := framework.Unschedulable
\t\tfor _, r := range insufficientResources {
\t\t\tif r.ResourceName != v1.ResourcePods && r.Requested > r.Capacity {
\t\t\t\tcode = framework.UnschedulableAndUnresolvable
\t\t\t}
\t\t}
\t\treturn framework.NewStatus(code, failureReasons...)`,
      ],
    ],
  },
  {
    file: 'noderesources/resource_allocation.go',
    change: 'the overhead of cpu counts in millicores',
    edits: [
      [
        'podRequest += quantity.Value()',
        'if resource == v1.ResourceCPU {\n\t\t\t\tpodRequest += quantity.MilliValue()\n\t\t\t} else {\n\t\t\t\tpodRequest += quantity.Value()\n\t\t\t}',
      ],
    ],
  },
  {
    file: 'podtopologyspread/scoring.go',
    change: 'the sum is rounded, not truncated',
    edits: [['return int64(score), nil', 'return int64(math.Round(score)), nil']],
  },
  {
    file: 'podtopologyspread/filtering.go',
    change:
      'pods on nodes that the affinity excludes do not count, nor crash the dry run; terminating pods never count',
    edits: [
      [
        'for _, constraint := range constraints {',
        'if !helper.PodMatchesNodeSelectorAndAffinityTerms(pod, node) ||\n' +
          '\t\t\t!nodeLabelsMatchSpreadConstraints(node.Labels, constraints) {\n' +
          '\t\t\treturn\n\t\t}\n' +
          '\t\tfor _, constraint := range constraints {',
      ],
      [
        'if !nodeLabelsMatchSpreadConstraints(node.Labels, s.Constraints) {',
        'if updatedPod.DeletionTimestamp != nil ||\n' +
          '\t\t!helper.PodMatchesNodeSelectorAndAffinityTerms(preemptorPod, node) ||\n' +
          '\t\t!nodeLabelsMatchSpreadConstraints(node.Labels, s.Constraints) {',
      ],
    ],
  },
  {
    file: 'interpodaffinity/scoring.go',
    change: 'the range of the scores does not include 0',
    edits: [
      IMPORT_MATH,
      ['var maxCount, minCount int64', 'var maxCount, minCount int64 = math.MinInt64, math.MaxInt64'],
    ],
  },
  {
    file: 'imagelocality/image_locality.go',
    change: 'init containers count',
    edits: [
      [
        'score := calculatePriority(sumImageScores(nodeInfo, pod.Spec.Containers, totalNumNodes), len(pod.Spec.Containers))',
        'containers := append(append([]v1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...)\n' +
          '\tscore := calculatePriority(sumImageScores(nodeInfo, containers, totalNumNodes), len(containers))',
      ],
    ],
  },
];

const PLUGINS = 'pkg/scheduler/framework/plugins';
const DRIVER = fileURLToPath(new URL('driver/main.go', import.meta.url));
/** The package of the program in the tree. */
const PACKAGE = 'pkg/scheduler/nodekeeperpeer';

function patched(tree: string, { file, change, edits }: Patch): string {
  let text = readFileSync(join(tree, PLUGINS, file), 'utf8');
  for (const [from, to] of edits) {
    const parts = text.split(from);
    if (parts.length !== 2) throw new Error(`${file}: "${from}" is there ${parts.length - 1} times (${change})`);
    text = parts.join(to);
  }
  return text;
}

/** Compiles the program into `dir`. The first time takes two minutes of CPU. @throws Error */
export function buildPeer(options: { readonly tree: string; readonly go: string; readonly dir: string }): string {
  const dir = resolve(options.dir);
  const tree = resolve(options.tree);
  const path = join(dir, 'gopath');
  const root = join(path, 'src/k8s.io/kubernetes');
  mkdirSync(join(path, 'src/k8s.io'), { recursive: true });
  symlinkTo(tree, root);
  const replaced: Record<string, string> = { [join(root, PACKAGE, 'main.go')]: DRIVER };
  for (const [index, patch] of PATCHES.entries()) {
    const file = join(dir, `patched-${index}.go`);
    writeFileSync(file, patched(tree, patch));
    replaced[join(root, PLUGINS, patch.file)] = file;
  }
  const overlay = join(dir, 'overlay.json');
  writeFileSync(overlay, JSON.stringify({ Replace: replaced }));
  const program = join(dir, 'peer');
  const { status, error, stderr } = spawnSync(
    options.go,
    ['build', '-overlay', overlay, '-o', program, `k8s.io/kubernetes/${PACKAGE}`],
    {
      cwd: root,
      env: {
        ...process.env,
        PWD: root,
        GOPATH: path,
        GOCACHE: join(dir, 'cache'),
        GO111MODULE: 'off',
        CGO_ENABLED: '0',
      },
      encoding: 'utf8',
    },
  );
  if (status !== 0) throw new Error(`go build failed: ${error?.message ?? stderr}`, { cause: error });
  return program;
}

function symlinkTo(target: string, path: string): void {
  try {
    symlinkSync(target, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** The answers for the cluster of each seed, in order. @throws Error when the program fails */
export async function* peerAnswers(program: string, seeds: readonly number[]): AsyncGenerator<RecordedAnswers> {
  const child = spawn(program, [], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = new Promise<number | null>((resolved) => child.once('exit', (code) => resolved(code)));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  try {
    for (const seed of seeds) {
      child.stdin.write(`${JSON.stringify(randomCluster(seed))}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(`the program ended with code ${await exited}`);
      yield { seed, answers: JSON.parse(value) as readonly PeerAnswer[] };
    }
  } finally {
    child.stdin.end();
    await exited;
  }
}
