import { expect, it } from 'vitest';
import { machineResolver } from './machine-resolver.ts';
import { podmanNetworks } from './podman-networks.ts';

/** Answers of podman, by its command; an Error fails the call. */
function podman(answers: { names: string; networks?: Record<string, unknown>[] | Error }) {
  const calls: string[] = [];
  return {
    calls,
    answers,
    async run(args: readonly string[]) {
      calls.push(args.join(' '));
      return answers.names;
    },
    async json(args: readonly string[]) {
      calls.push(args.join(' '));
      if (answers.networks instanceof Error) throw answers.networks;
      return answers.networks ?? [];
    },
  };
}

it('the networks of podman are read once, all of them with two calls', async () => {
  const networks = [
    { subnets: [{ subnet: '10.88.0.0/16' }, { subnet: 'fd00::/64' }] },
    { subnets: undefined },
    { subnets: [{ subnet: '10.89.0.0/24' }] },
  ];
  const program = podman({ names: 'podman\nhost\nother\n', networks });
  const read = podmanNetworks(program);
  for (let time = 0; time < 2; time += 1) expect(await read()).toEqual(['10.88.0.0/16', 'fd00::/64', '10.89.0.0/24']);
  expect(program.calls).toEqual(['network ls --quiet', 'network inspect podman host other']);
});

it('without a network there is nothing to inspect', async () => {
  const program = podman({ names: '\n' });
  expect(await podmanNetworks(program)()).toEqual([]);
  expect(program.calls).toHaveLength(1);
});

it('a failed read is repeated', async () => {
  const program = podman({ names: 'podman\n', networks: new Error('busy') });
  const read = podmanNetworks(program);
  await expect(read()).rejects.toThrow('busy');
  program.answers.networks = [{ subnets: [{ subnet: '10.88.0.0/16' }] }];
  expect(await read()).toEqual(['10.88.0.0/16']);
});

it('a machine without a file of its resolver has none', () => {
  expect(machineResolver('/nonexistent')).toEqual({ nameservers: [], searches: [], options: [] });
});
