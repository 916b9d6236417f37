/** The metrics, the scrape configuration and the alert rules of docs/operations/prometheus, by Prometheus' own tool. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parse } from 'yaml';
import { apiInMemory } from './support/api-in-memory.ts';

const FOLDER = fileURLToPath(new URL('../docs/operations/prometheus/', import.meta.url));
const isInstalled = spawnSync('promtool', ['--version']).status === 0;

let folder: string;
beforeEach((context) => {
  if (!isInstalled) context.skip('promtool is not installed (Debian: prometheus)');
  folder = mkdtempSync(join(tmpdir(), 'nodekeeper-prometheus-'));
});
afterEach(() => {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

function promtool(argv: readonly string[], options: { readonly cwd?: string; readonly input?: string } = {}) {
  const { status, stdout, stderr } = spawnSync('promtool', argv, { encoding: 'utf8', ...options });
  return { status, output: stdout + stderr };
}

async function metricsOfSmallCluster(): Promise<string> {
  const api = apiInMemory();
  const created = await api.send('POST', '/api/v1/nodes', {
    body: {
      metadata: { name: 'edge-1', labels: { 'topology.kubernetes.io/zone': 'a' } },
      spec: { taints: [{ key: 'gpu', effect: 'NoSchedule' }] },
      status: {
        capacity: { cpu: '4', memory: '8Gi', pods: '110' },
        allocatable: { cpu: '4' },
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    },
  });
  expect(created.code).toBe(201);
  const { text } = await api.send('GET', '/metrics');
  expect(text).toContain('kube_node_spec_taint{node="edge-1"');
  return text;
}

it('finds no fault in the metrics', async () => {
  expect(promtool(['check', 'metrics'], { input: await metricsOfSmallCluster() })).toEqual({ status: 0, output: '' });
});

it('finds the fault of a metric without help', () => {
  expect(promtool(['check', 'metrics'], { input: '# TYPE a gauge\na 1\n' }).status).not.toBe(0);
});

it('accepts the scrape configuration', () => {
  const token = join(folder, 'token');
  writeFileSync(token, 'token');
  const config = join(folder, 'prometheus.yml');
  writeFileSync(
    config,
    readFileSync(join(FOLDER, 'scrape.yaml'), 'utf8').replace(/(credentials_file: ).*/, `$1${token}`),
  );
  expect(promtool(['check', 'config', config])).toMatchObject({
    status: 0,
    output: expect.stringContaining('SUCCESS'),
  });
});

it('raises each alert in its story, and not before', () => {
  const rules = parse(readFileSync(join(FOLDER, 'rules.yaml'), 'utf8')) as { groups: { rules: { alert: string }[] }[] };
  const tested = readFileSync(join(FOLDER, 'rules.test.yaml'), 'utf8');
  const names = rules.groups.flatMap((group) => group.rules.map(({ alert }) => alert));
  expect(names.filter((name) => !tested.includes(`alertname: ${name}\n        exp_alerts:\n`))).toEqual([]);
  expect(promtool(['test', 'rules', 'rules.test.yaml'], { cwd: FOLDER })).toMatchObject({
    status: 0,
    output: expect.stringContaining('SUCCESS'),
  });
});

it('uses only metrics that the cluster has', async () => {
  const text = readFileSync(join(FOLDER, 'rules.yaml'), 'utf8');
  const used = [...text.matchAll(/\b(?:kube|node_collector|nodekeeper)_[a-z_]+/g)].map(([name]) => name);
  const known = readFileSync(fileURLToPath(new URL('../docs/operations/prometheus.md', import.meta.url)), 'utf8');
  expect(used.length).toBeGreaterThan(5);
  expect(used.filter((name) => !known.includes(`\`${name}\``))).toEqual([]);
});
