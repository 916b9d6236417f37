/**
 * npm run reach
 *
 * Fails when an exported declaration, or a member that is a function, is reached from no program: only tests use it, or
 * nothing does. Delete it, make it run, or name it in exceptions.ts with a reason.
 */
import { fileURLToPath } from 'node:url';
import { examine } from './examine.ts';
import { exceptions } from './exceptions.ts';
import { layout } from './layout.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

const { files, symbols, findings, stale, excepted } = examine(ROOT, layout, exceptions);
for (const { symbol, line, namedIn } of findings) {
  const [file, name] = symbol.split('#');
  const where = namedIn.length === 0 ? 'named nowhere else' : `named in ${namedIn.join(', ')}`;
  console.error(`${file}:${line}  ${name}  is reached from no program; ${where}`);
}
for (const { symbol } of stale) console.error(`exceptions.ts  ${symbol}  no longer applies: delete the entry`);
console.log(`reachability: ${symbols} symbols in ${files} files, ${findings.length} unreached, ${excepted} excepted`);
process.exitCode = findings.length + stale.length === 0 ? 0 : 1;
