import { describe, expect, it } from 'vitest';
import { parseStartOptions } from './options.ts';

const parse = (line: string) => parseStartOptions(line.split(' ').filter(Boolean));

describe('options of npm run start:aws', () => {
  it('has defaults for all of them', () => {
    expect(parse('')).toEqual({
      help: false,
      dataDirectory: '.nodekeeper-aws',
      port: 6443,
      nodes: 6,
      zones: 3,
      ec2Nodes: 2,
      controllers: true,
      policyFile: undefined,
      synthesis: 'auto',
      recordCallsFile: undefined,
      awsLimits: true,
      accountConcurrency: 1_000,
      chunkHold: 'one-chunk',
      console: true,
      quiet: false,
      verbose: false,
    });
  });

  it('uses the options of the command line', () => {
    expect(
      parse(
        '--data d --port 0 --nodes 12 --zones 2 --no-controllers --policy p.yaml --synth never --quiet --no-console',
      ),
    ).toMatchObject({
      dataDirectory: 'd',
      console: false,
      port: 0,
      nodes: 12,
      zones: 2,
      controllers: false,
      policyFile: 'p.yaml',
      synthesis: 'never',
      quiet: true,
    });
    expect(parse('--ephemeral --no-fleet')).toMatchObject({ dataDirectory: undefined, nodes: 0, ec2Nodes: 0 });
    expect(parse('--aws-limits off --account-concurrency 10')).toMatchObject({
      awsLimits: false,
      accountConcurrency: 10,
    });
    expect(parse('--nodes 1').ec2Nodes).toBe(1);
    expect(parse('--ec2-nodes 6').ec2Nodes).toBe(6);
  });

  it.each([
    ['--nodes 3 --ec2-nodes 4', /^--ec2-nodes 4: there are only 3 machines$/],
    ['--colour', /^Unknown option '--colour' \(--help lists the options\)$/],
    ['serve', /^Unexpected argument 'serve'/],
    ['--port', /--port <value>' argument missing/],
    ['--port http', /^--port must be a whole number from 0 to 65535, not http$/],
    ['--port 70000', /^--port must be/],
    ['--zones 0', /^--zones must be a whole number from 1 to 26, not 0$/],
    ['--nodes -1', /--nodes/],
    ['--synth maybe', /^--synth must be auto, always or never, not maybe$/],
    ['--aws-limits maybe', /^--aws-limits must be on or off, not maybe$/],
    ['--account-concurrency 0', /^--account-concurrency must be a whole number from 1/],
    ['--ephemeral --data d', /exclude each other/],
  ])('refuses "%s" in one line', (line, message) => {
    let thrown = '';
    try {
      parse(line);
    } catch (error) {
      thrown = (error as Error).message;
    }
    expect(thrown).toMatch(message);
    expect(thrown).not.toContain('\n');
  });
});
