"""The tool `list_mail_folders`: the mail accounts, and the folders of one."""

from __future__ import annotations

from typing import Annotated

from tools.framework.tool import ToolContext, ToolResult, tool
from tools.mail.account_session import open_session
from tools.mail.argument_texts import ACCOUNT
from tools.mail.folders import MOST_FOLDERS, list_folders


@tool(icon="folder", effect="read", results="keep", timeout=60, origin="mail", needs="mail")
async def list_mail_folders(
    context: ToolContext, account: Annotated[str, ACCOUNT] = ""
) -> ToolResult:
    """List the user's mail accounts and the folders of one of them."""
    async with open_session(context.mail, account) as (chosen, imap):
        folders = await list_folders(imap)
    names = ", ".join(await context.mail.names())
    lines = [f"Accounts: {names}", f"Folders of {chosen.name} (usual: {chosen.folder}):"]
    lines += [f"- {each.name}" for each in folders[:MOST_FOLDERS] if each.is_selectable]
    if len(folders) > MOST_FOLDERS:
        lines.append(f"[{len(folders) - MOST_FOLDERS:,} more folders are not shown]")
    return ToolResult("\n".join(lines), details={"account": chosen.name, "folders": len(folders)})
