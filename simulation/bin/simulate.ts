import { simulate } from '../simulate.ts';

process.exitCode = await simulate(process.argv.slice(2), {
  print: (line) => console.log(line),
  printError: (line) => console.error(line),
  environment: process.env,
});
