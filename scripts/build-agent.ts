/** npm run agent:build: the agent and all it imports as one file for machines that have Node and nothing else. */
import { chmodSync, cpSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** What a slow link carries in a minute. Bytes. */
const BYTES_MAX = 2 * 1024 * 1024;

/** Returns the path of the bundle. @throws Error when it is larger than it may be. */
export async function buildAgent(directory: string): Promise<string> {
  mkdirSync(directory, { recursive: true });
  const outfile = join(directory, 'nodekeeper-agent.mjs');
  await build({
    entryPoints: [join(ROOT, 'agent/bin/nodekeeper-agent.ts')],
    outfile,
    absWorkingDir: ROOT,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    // Asked for only to find a session bus through a display.
    external: ['x11'],
    logLevel: 'warning',
    // CommonJS dependencies inside an ES module still call require for Node's own modules.
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
  });
  chmodSync(outfile, 0o755);
  const { size } = statSync(outfile);
  if (size > BYTES_MAX) throw new Error(`${outfile} has ${size} bytes, and may have ${BYTES_MAX}`);
  for (const file of ['nodekeeper-agent.service', 'install.sh']) {
    cpSync(join(ROOT, 'agent/packaging', file), join(directory, file));
  }
  return outfile;
}

if (import.meta.main) {
  const outfile = await buildAgent(join(ROOT, 'agent/dist'));
  console.log(`${outfile} ${Math.round(statSync(outfile).size / 1_024)} KiB`);
}
