/** The process of `npm run sim`. */
import { sim } from '../sim.ts';

process.exitCode = await sim(process.argv.slice(2), {
  print: (line) => console.log(line),
  printError: (line) => console.error(line),
});
