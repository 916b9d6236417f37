/**
 * Writes shared/kinds/generated, or with --check compares it with what it would write, and reads upstream's own
 * objects. Without the sources, --check compares the types with the stored tables that they are made of.
 *
 * The folders hold the repositories kubernetes/api and kubernetes/apimachinery at the tag of one release, v0.36.3 for
 * Kubernetes 1.36.3. The sources decide which version is served.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TYPE_TABLE } from '../../shared/kinds/generated/type-table.ts';
import { differingFiles, generatedFiles, typesOf } from './files.ts';
import { pairFaults } from './pairs.ts';
import { WANTED } from './roots.ts';

const USAGE = `Usage: npm run kinds -- API APIMACHINERY [--check]
       npm run kinds -- --check

  API, APIMACHINERY  folders of kubernetes/api and kubernetes/apimachinery, at one tag
  --check            writes nothing; exit code 1 if shared/kinds/generated differs, without the folders: if types.ts is
                     not made of the stored tables`;

const words = process.argv.slice(2);
if (words.includes('--help')) {
  console.log(USAGE);
  process.exit(0);
}
const readStored = (path: string): string | undefined => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);
const [api, apimachinery, ...others] = words.filter((word) => word !== '--check');
if (api === undefined && words.includes('--check')) {
  const differing = differingFiles(typesOf(TYPE_TABLE, WANTED), readStored);
  for (const path of differing) console.error(`${path} is not made of type-table.ts: run npm run kinds`);
  process.exit(differing.length > 0 ? 1 : 0);
}
if (api === undefined || apimachinery === undefined || others.length > 0) {
  console.error(USAGE);
  process.exit(2);
}

const folders: Readonly<Record<string, string>> = { api, apimachinery };
const files = generatedFiles((path) => {
  const [repository = '', ...rest] = path.split('/');
  return readFileSync(join(folders[repository] ?? '', ...rest), 'utf8');
}, WANTED);
const differing = differingFiles(files, readStored);

if (words.includes('--check')) {
  for (const path of differing)
    console.error(`${path} differs from the sources: run npm run kinds -- API APIMACHINERY`);
  const testdata = join(api, 'testdata', 'HEAD');
  const pairs = readdirSync(testdata)
    .filter((file) => file.endsWith('.json'))
    .map((file) => ({
      name: file,
      json: readFileSync(join(testdata, file), 'utf8'),
      protobuf: readFileSync(join(testdata, file.replace(/json$/, 'pb'))),
    }));
  const faults = pairFaults(pairs, WANTED.leftOut);
  for (const fault of faults) console.error(fault);
  process.exit(differing.length + faults.length > 0 ? 1 : 0);
}
for (const path of differing) writeFileSync(path, files.get(path) ?? '');
console.log(differing.length > 0 ? differing.map((path) => `${path}: written`).join('\n') : 'no difference');
