/** Measurements of DescribeInstances. It changes nothing and costs nothing. */
import type { Measuring } from '../calls.ts';
import type { Described, EC2_FACTS } from '../ec2-facts.ts';
import type { MeasuresOf } from '../measures.ts';

/** Ids of the right form. That an instance has one of them is as likely as any guess of 60 bits. */
const unknownId = (index: number): string => `i-0${'5eed'.repeat(3)}${index.toString(16).padStart(4, '0')}`;

async function describe({ calls }: Measuring, parameters: Readonly<Record<string, string>>): Promise<Described> {
  const { status, text } = await calls.ec2('DescribeInstances', parameters);
  const instances = (text.match(/<instanceId>/g) ?? []).length;
  const error = /<Code>([^<]+)<\/Code>/.exec(text)?.[1] ?? (status < 300 ? undefined : `HTTP status ${status}`);
  return error === undefined ? { instances } : { error, instances };
}

const filterOf = (values: number): Readonly<Record<string, string>> => ({
  'Filter.1.Name': 'instance-id',
  ...Object.fromEntries(
    Array.from({ length: values }, (_, index) => [`Filter.1.Value.${index + 1}`, unknownId(index)]),
  ),
});

export const MEASURE_EC2: MeasuresOf<typeof EC2_FACTS> = {
  'ec2-unknown-id': (measuring) => describe(measuring, { 'InstanceId.1': unknownId(0) }),
  'ec2-malformed-id': (measuring) => describe(measuring, { 'InstanceId.1': 'i-nodekeeper' }),
  'ec2-unknown-in-filter': (measuring) => describe(measuring, filterOf(1)),
  'ec2-filter-values': async (measuring) => ({
    accepted: await describe(measuring, filterOf(200)),
    refused: await describe(measuring, filterOf(201)),
  }),
  'ec2-ids-and-pages': (measuring) => describe(measuring, { 'InstanceId.1': unknownId(0), MaxResults: '5' }),
};
