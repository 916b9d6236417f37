/**
 * npm run bench -- [NAME… [OPTIONS]]
 *
 * Runs the named benchmarks, or all except those that need many minutes, and prints their figures as JSON lines:
 * {"bench": NAME, …figures}.
 */
import { availableParallelism, cpus } from 'node:os';
import { UsageError } from './benchmark.ts';
import { BENCHMARKS } from './benchmarks.ts';

async function run(words: readonly string[]): Promise<number> {
  const firstOption = words.findIndex((word) => word.startsWith('-'));
  const names = firstOption < 0 ? words : words.slice(0, firstOption);
  const options = firstOption < 0 ? [] : words.slice(firstOption);
  if (options.includes('--help')) {
    for (const { name, about, usage } of BENCHMARKS) {
      if (names.length > 0 && !names.includes(name)) continue;
      console.log(`${name}: ${about}${usage === undefined ? '' : `\n  ${name} ${usage}`}`);
    }
    return 0;
  }
  const unknown = names.filter((name) => !BENCHMARKS.some((benchmark) => benchmark.name === name));
  if (unknown.length > 0) {
    console.error(
      `no such benchmark: ${unknown.join(', ')}; there are ${BENCHMARKS.map(({ name }) => name).join(', ')}`,
    );
    return 2;
  }
  const chosen = BENCHMARKS.filter(({ name, onlyByName }) =>
    names.length === 0 ? onlyByName !== true : names.includes(name),
  );
  if (options.length > 0 && (chosen.length !== 1 || chosen[0]?.usage === undefined)) {
    console.error('options follow the name of one benchmark that has some; see --help');
    return 2;
  }
  const print = (line: Record<string, unknown>): void => console.log(JSON.stringify(line));
  print({ bench: 'machine', node: process.version, cpu: cpus()[0]?.model, cores: availableParallelism() });
  let failed = 0;
  for (const benchmark of chosen) {
    try {
      await benchmark.run((figures) => print({ bench: benchmark.name, ...figures }), options);
    } catch (cause) {
      if (cause instanceof UsageError) {
        console.error(`${cause.message}\nusage: npm run bench -- ${benchmark.name} ${benchmark.usage ?? ''}`);
        return 2;
      }
      failed += 1;
      console.error(`${benchmark.name} could not be measured:`, cause);
    }
  }
  return failed === 0 ? 0 : 1;
}

process.exitCode = await run(process.argv.slice(2));
