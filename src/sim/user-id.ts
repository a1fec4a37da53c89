/** The id of a user from a free name: `ann` is `ann@im.wechat`; what has an @ is an id already. */
export function userIdOf(name: string): string {
  return name.includes('@') ? name : `${name}@im.wechat`
}
