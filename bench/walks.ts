/**
 * How far one piece of work walks through the code: files, and folders that contain them. It counts what runs, not what
 * is imported: the handlers over the embedded engine, with the environment and the stream filters of the template
 * (bench/walk-process.ts).
 */
import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readAssembly } from '../aws-local/assembly/assembly.ts';
import { functionUrlIds, planLocalMode } from '../aws-local/assembly/plan.ts';
import { synthesise } from '../aws-local/assembly/synthesise.ts';
import { engineBinary, startEngine } from '../aws-local/engine/engine.ts';
import { createTables } from '../aws-local/engine/tables.ts';
import { type Benchmark, readOptions } from './benchmark.ts';
import { takeWalks, type Walk } from './walk-process.ts';

const PROJECT = fileURLToPath(new URL('..', import.meta.url));
const ADMIN_TOKEN = 'administrator';

export const walks: Benchmark = {
  name: 'walks',
  about: 'files and folders that a heartbeat, a quiet tick, an eviction, a patch and a new Deployment enter',
  usage: '[--verbose]',
  smallest: [],
  async run(report, words) {
    const { verbose = false } = readOptions(words, { verbose: { type: 'boolean' } });
    for (const { name, files } of await walked()) {
      const byFolder = Map.groupBy(files, (path) => dirname(path));
      report({ walk: name, files: files.length, folders: byFolder.size });
      for (const [folder, paths] of verbose ? byFolder : []) {
        report({ walk: name, folder, entered: paths.map((path) => path.slice(folder.length + 1)).join(' ') });
      }
    }
  },
};

async function walked(): Promise<readonly Walk[]> {
  const { directory } = await synthesise({ projectDirectory: PROJECT, context: {}, inputFiles: [], mode: 'auto' });
  const assembly = readAssembly(directory);
  const token = {
    sha256: createHash('sha256').update(ADMIN_TOKEN).digest('hex'),
    user: 'admin',
    groups: ['system:masters'],
  };
  const plan = planLocalMode(assembly, {
    region: 'eu-central-1',
    accountId: '000000000000',
    apiUrl: 'https://127.0.0.1:6443',
    functionUrls: Object.fromEntries(functionUrlIds(assembly.template).map((id) => [id, 'https://127.0.0.1:6444/'])),
    parameters: { StaticTokens: JSON.stringify([token]) },
  });
  const engine = await startEngine(engineBinary(PROJECT), undefined);
  try {
    await createTables(engine.client, plan.tables);
    const nameOf = new Map(plan.functions.map(({ logicalId, name }) => [logicalId, name]));
    return await takeWalks({
      endpoint: engine.endpoint,
      adminToken: ADMIN_TOKEN,
      environments: Object.fromEntries(plan.functions.map(({ name, environment }) => [name, environment])),
      streams: plan.streamSources.map(({ tableName, functionId, filterPatterns }) => ({
        tableName,
        functionName: nameOf.get(functionId) ?? '',
        filterPatterns,
      })),
    });
  } finally {
    await engine.stop();
  }
}
