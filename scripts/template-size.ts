/**
 * node scripts/template-size.ts [ASSEMBLY]
 *
 * The cost and size of a synthesis, as one JSON line: seconds of `npm run synth`, the template's size and resources
 * against CloudFormation's limits. With the directory of an assembly nothing is synthesised.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** CloudFormation quotas: a template from S3, resources and outputs of one stack. */
const LIMITS = { templateBytes: 1_000_000, resources: 500, outputs: 200 };
const SYNTH_TIMEOUT_MS = 120_000;
/** Every change synthesises. A longer synthesis discourages running it. */
const SYNTH_SECONDS_MAX = 15;

const given = process.argv[2];
const startedMs = performance.now();
if (given === undefined) {
  const { status, stderr } = spawnSync('npm', ['run', 'synth'], {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: SYNTH_TIMEOUT_MS,
  });
  if (status !== 0) throw new Error(`npm run synth failed:\n${stderr}`);
}
const synthSeconds = Math.round((performance.now() - startedMs) / 100) / 10;

const file = join(given ?? join(ROOT, 'cdk.out'), 'Nodekeeper.template.json');
const template = JSON.parse(readFileSync(file, 'utf8')) as {
  Resources: Record<string, { Type: string }>;
  Outputs?: Record<string, unknown>;
};
const byType: Record<string, number> = {};
for (const { Type: type } of Object.values(template.Resources)) byType[type] = (byType[type] ?? 0) + 1;
const sizes = {
  templateBytes: statSync(file).size,
  resources: Object.keys(template.Resources).length,
  outputs: Object.keys(template.Outputs ?? {}).length,
};
console.log(JSON.stringify({ ...(given === undefined ? { synthSeconds } : {}), ...sizes, limits: LIMITS, byType }));

const over = Object.entries(LIMITS).filter(([name, limit]) => sizes[name as keyof typeof sizes] > limit);
if (given === undefined && synthSeconds > SYNTH_SECONDS_MAX) over.push(['synthSeconds', SYNTH_SECONDS_MAX]);
for (const [name, limit] of over) console.error(`${name} is over ${limit}`);
process.exitCode = over.length === 0 ? 0 : 1;
