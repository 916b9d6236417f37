/** The program behind `npm run health-shards`. */
import { CommandError } from '../../cli/command.ts';
import { HEALTH_SHARDS_USAGE, healthShardsCommand } from './command.ts';

try {
  await healthShardsCommand(process.argv.slice(2), {
    environment: process.env,
    nowMs: Date.now(),
    print: (line) => console.log(line),
  });
} catch (error) {
  const isUsage = error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
  if (!(error instanceof CommandError) && !isUsage) throw error;
  console.error(`health-shards: ${error.message}`);
  console.error(error instanceof CommandError ? error.next : HEALTH_SHARDS_USAGE);
  process.exitCode = isUsage ? 2 : 1;
}
