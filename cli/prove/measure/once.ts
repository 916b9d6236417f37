import type { Measuring } from '../calls.ts';

/** For facts that have one observation: it is made once a run. */
export const once = <Observed>(observe: (measuring: Measuring) => Promise<Observed>) => {
  const known = new WeakMap<Measuring, Promise<Observed>>();
  return (measuring: Measuring): Promise<Observed> => {
    const begun = known.get(measuring) ?? observe(measuring);
    known.set(measuring, begun);
    return begun;
  };
};
