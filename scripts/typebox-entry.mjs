// What dist/ uses of typebox while it runs; scripts/build.mjs makes one file of it.
export { Type } from 'typebox'
export { Compile } from 'typebox/compile'
