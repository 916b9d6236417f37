/** What a cold start of each deployed handler reads, and the time a fresh process takes to import it. */
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { readAssembly } from '../aws-local/assembly/assembly.ts';
import { type FunctionPlan, functionUrlIds, planLocalMode } from '../aws-local/assembly/plan.ts';
import { synthesise } from '../aws-local/assembly/synthesise.ts';
import { startText } from '../test/support/start-text.ts';
import { type Benchmark, percentile, readOptions, rounded, wholeNumber } from './benchmark.ts';

const PROJECT = fileURLToPath(new URL('..', import.meta.url));

export const bundles: Benchmark = {
  name: 'bundles',
  about: 'what a cold start of each handler reads, and the time of its import, as synthesised',
  usage: '[--imports 7 of each] [--function NAME]',
  smallest: ['--imports', '1', '--function', 'heartbeat'],
  async run(report, words) {
    const text = { type: 'string' } as const;
    const values = readOptions(words, { imports: text, function: text });
    const imports = wholeNumber('imports', values.imports, { least: 1, most: 1_000, otherwise: 7 });
    const { directory } = await synthesise({ projectDirectory: PROJECT, context: {}, inputFiles: [], mode: 'auto' });
    const assembly = readAssembly(directory);
    const plan = planLocalMode(assembly, {
      region: 'eu-central-1',
      accountId: '000000000000',
      apiUrl: 'https://127.0.0.1:6443',
      functionUrls: Object.fromEntries(functionUrlIds(assembly.template).map((id) => [id, 'https://127.0.0.1:6444/'])),
      parameters: {},
    });
    for (const handler of plan.functions) {
      if (values.function !== undefined && values.function !== handler.name) continue;
      const entry = entryOf(handler);
      const text = startText(dirname(entry), basename(entry));
      const times: number[] = [];
      for (let round = 0; round < imports; round += 1) times.push(await importMs(entry, handler.environment));
      report({
        function: handler.name,
        startBytes: Buffer.byteLength(text),
        gzipBytes: gzipSync(text).length,
        importMedianMs: rounded(percentile(times, 0.5)),
        importMaxMs: rounded(Math.max(...times)),
      });
    }
  },
};

function entryOf(handler: FunctionPlan): string {
  const module = handler.handler.split('.')[0]!;
  for (const extension of ['mjs', 'js', 'cjs']) {
    const file = join(handler.codePath, `${module}.${extension}`);
    if (statSync(file, { throwIfNoEntry: false }) !== undefined) return file;
  }
  throw new Error(`${handler.name}: no ${module}.mjs in ${handler.codePath}`);
}

/** In a process of its own: a second import in the same process is cached. */
async function importMs(entry: string, environment: Readonly<Record<string, string>>): Promise<number> {
  // The runtime's own global, which a streaming handler calls when it loads.
  const script = `globalThis.awslambda = { streamifyResponse: (handler) => handler };
    const t = performance.now(); await import(${JSON.stringify(pathToFileURL(entry).href)});
    process.stdout.write('\\n' + String(performance.now() - t) + '\\n'); process.exit(0)`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
    env: {
      AWS_REGION: 'eu-central-1',
      AWS_ACCESS_KEY_ID: 'bench',
      AWS_SECRET_ACCESS_KEY: 'bench',
      ...environment,
    },
    timeout: 30_000,
  });
  return Number(stdout.trim().split('\n').at(-1));
}
