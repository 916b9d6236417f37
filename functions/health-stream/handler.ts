export const handler = async (): Promise<never> => {
  throw new Error('not wired yet');
};
