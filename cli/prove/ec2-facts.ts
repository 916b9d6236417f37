/** Facts about EC2's answers for instances that it does not know. Pure. */
import { fact, holdsIf, isInconclusive, unknown, type Verdict } from './verdict.ts';

/** An answer of DescribeInstances. */
export interface Described {
  /** Code of the error. Absent: it was successful. */
  readonly error?: string;
  readonly instances: number;
}

const textOf = ({ error, instances }: Described): string => error ?? `${instances} instances, no error`;

const failsAs =
  (code: string) =>
  (described: Described): Verdict =>
    isInconclusive(described.error) ? unknown(described.error) : holdsIf(described.error === code, textOf(described));

export const EC2_FACTS = {
  'ec2-unknown-id': fact<Described>({
    sentence: 'One unknown id among the ids fails the whole call as InvalidInstanceID.NotFound',
    source: 'EC2 API Reference, "Error codes for the Amazon EC2 API"',
    expected: 'InvalidInstanceID.NotFound',
    evaluate: failsAs('InvalidInstanceID.NotFound'),
  }),
  'ec2-malformed-id': fact<Described>({
    sentence: 'A malformed id fails the whole call as InvalidInstanceID.Malformed',
    source: 'EC2 API Reference, "Error codes for the Amazon EC2 API"',
    expected: 'InvalidInstanceID.Malformed',
    evaluate: failsAs('InvalidInstanceID.Malformed'),
  }),
  'ec2-unknown-in-filter': fact<Described>({
    sentence: 'An unknown id in the filter instance-id is only absent from the answer',
    source: 'EC2 API Reference, "DescribeInstances"',
    expected: 'no instance, no error',
    evaluate: (described) =>
      isInconclusive(described.error)
        ? unknown(described.error)
        : holdsIf(described.error === undefined && described.instances === 0, textOf(described)),
  }),
  'ec2-filter-values': fact<{ readonly accepted: Described; readonly refused: Described }>({
    sentence: 'A call accepts 200 values of a filter, and refuses 201',
    source: 'EC2 User Guide, "Filter your resources"; the error is observed',
    expected: 'no error with 200 values, FilterLimitExceeded with 201',
    evaluate: ({ accepted, refused }) => {
      const reason = `200: ${textOf(accepted)}; 201: ${textOf(refused)}`;
      if (isInconclusive(accepted.error) || isInconclusive(refused.error)) return unknown(reason);
      return holdsIf(accepted.error === undefined && refused.error === 'FilterLimitExceeded', reason);
    },
  }),
  'ec2-ids-and-pages': fact<Described>({
    sentence: 'Ids and MaxResults exclude each other',
    source: 'EC2 API Reference, "DescribeInstances", MaxResults',
    expected: 'InvalidParameterCombination',
    evaluate: failsAs('InvalidParameterCombination'),
  }),
};
